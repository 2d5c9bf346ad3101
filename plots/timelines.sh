#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records the timelines on the chapters' pages again, on this machine's Hopper GPU, into plots/results/h200/pictures.
# Then ./run plots draws them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

record() {  # record <name> <chapter> <size> <level>...
  local level traces=()
  for level in "${@:4}"; do
    traces+=("build/timelines/$2-$level.json")
    BACKEND=cuda ./run "$2" --level "$level" --size "$3" --timeline "${traces[-1]}"
  done
  PYTHONPATH=plots python3 -B -m cookbook_plots.traces "${traces[@]}" --data "plots/results/h200/pictures/$1.json"
}

record gemm-timeline 8 4608x2816x1024 static ping_pong  # three tiles per SM
record attention-timeline 10 1x11x11x3072x1056x128 specialised ping_pong split_softmax  # two tiles per SM
