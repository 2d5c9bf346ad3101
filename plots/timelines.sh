#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records and draws the timelines on the chapters' pages again. They show the order of events on the
# SIMT backend, so no GPU is needed, and the result is the same on every machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

figure() {  # figure <chapter> <size> <level>...
  local chapter=$1 size=$2 level traces=()
  shift 2
  for level in "$@"; do
    traces+=("build/timelines/$chapter-$level.json")
    BACKEND=simt ./run "$chapter" --level "$level" --size "$size" --timeline "${traces[-1]}"
  done
  plots/run.sh --timeline "${traces[@]}" --out "plots/figures/simt/timeline-$chapter"
}

figure 6 128x256x384 swizzle_128 pipeline warp_specialised one_in_flight
figure 8 256x1280x256 static hidden_epilogue ping_pong
