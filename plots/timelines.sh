#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records and draws the timelines on the chapters' pages again.
#   plots/timelines.sh           the order of events on the SIMT backend: no GPU, the same on every machine
#   plots/timelines.sh FOLDER    times on this machine's Hopper GPU, into FOLDER (plots/figures/h200)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

figure() {  # figure <chapter> <size> <level>...
  local chapter=$1 size=$2 level traces=()
  shift 2
  for level in "$@"; do
    traces+=("build/timelines/$chapter-$level.json")
    BACKEND=$backend ./run "$chapter" --level "$level" --size "$size" --timeline "${traces[-1]}"
  done
  plots/run.sh --timeline "${traces[@]}" --out "$folder/timeline-$chapter"
}

backend=simt folder=plots/figures/simt
if [ $# -gt 0 ]; then
  backend=cuda folder=$1
  figure 8 4608x2816x1024 static ping_pong                       # three tiles per SM
  figure 10 1x11x11x3072x1056x128 specialised ping_pong split_softmax  # two tiles per SM
  exit
fi

figure 6 128x256x384 swizzle_128 pipeline warp_specialised one_in_flight
figure 8 256x1280x256 static hidden_epilogue ping_pong
