#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records and draws the timelines on the chapters' pages again.
#   plots/timelines.sh           the order of events on the SIMT backend: no GPU, the same on every machine
#   plots/timelines.sh gpu       times on this machine's Hopper GPU, into plots/results/h200/pictures; then ./run plots
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

record() {  # record <chapter> <size> <level>...: into ${traces[@]}
  local level
  traces=()
  for level in "${@:3}"; do
    traces+=("build/timelines/$1-$level.json")
    BACKEND=$backend ./run "$1" --level "$level" --size "$2" --timeline "${traces[-1]}"
  done
}

if [ "${1:-}" = gpu ]; then
  backend=cuda folder=plots/results/h200/pictures
  record 8 4608x2816x1024 static ping_pong  # three tiles per SM
  plots/run.sh --timeline "${traces[@]}" --data $folder/gemm-timeline.json
  record 10 1x11x11x3072x1056x128 specialised ping_pong split_softmax  # two tiles per SM
  plots/run.sh --timeline "${traces[@]}" --data $folder/attention-timeline.json
  exit
fi

backend=simt
record 6 128x256x384 swizzle_128 pipeline warp_specialised one_in_flight
plots/run.sh --timeline "${traces[@]}" --out plots/figures/simt/timeline-6
