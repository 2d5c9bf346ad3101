#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records what the pictures of the chapters show again, on the SIMT backend.
#   plots/pictures.sh            into plots/results/simt/pictures; then ./run plots draws them
#   plots/pictures.sh FOLDER     into another folder (the test that compares them)
# capstone-start.json is of a capstone: the test capstone_new compares it, and writes it with COOKBOOK_WRITE_PICTURES=1.
# Needs the programs of the SIMT backend (make BACKEND=simt) and its chapter-6-timeline.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${COOKBOOK_BUILD:-build/simt} folder=${1:-plots/results/simt/pictures}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"

record() {  # [size=64x24] record <chapter> <ladder> <level>...
  local level
  for level in "${@:3}"; do
    "$build/chapter-$1" --ladder "$2" --level "$level" ${size:+--size "$size"} --explain --draw "$scratch" >"$scratch/log" ||
      { [ "$?" -eq 1 ] && [ -n "${size:-}" ]; } || { cat "$scratch/log" >&2; exit 1; }  # claims are of another size
    cp "$scratch/$2-$level.json" "$folder/"
  done
}

record 1 copy strided coalesced
record 2 sgemm register_2d vectorised
record 3 transpose tile padded swizzled vectorised
size=64x24 record 3 transpose naive  # a tile of which a part is beyond the edge
record 3 odd_shapes in_flight
record 4 sgemm async_copy warp_tile
record 10 prefill tensor_cores  # a store of which three lanes in four take no part
record 7 smem_swizzle no_swizzle swizzle_128
"$build/chapter-5-fragments" --json "$folder/mma-zoom.json"
"$build/chapter-5-sums" --json "$folder/tensor-core-sums.json"
"$build/chapter-6-descriptors" --json "$folder/wgmma-descriptor.json"
"$build/chapter-7-spans" --json "$folder/swizzle-spans.json"
"$build/chapter-7-waves" --json "$folder/raster-waves.json"
"$build/chapter-9-steps" --json "$folder/online-softmax.json"
"$build/chapter-12-promotion" --json "$folder/promotion.json"
COOKBOOK_SIMT_DEVICE=b200 COOKBOOK_SIMT_ASYNC=random:1 "$build/chapter-14-tensor-memory" --json "$folder/tensor-memory.json"
"$build/chapter-10-schedule" --json "$folder/attention-schedule.json"
for level in swizzle_128 pipeline; do
  "$build/chapter-6" --level $level --size 128x128x384 --timeline "$scratch/order-$level.json" >"$scratch/log"
done
PYTHONPATH=plots python3 -B -m cookbook_plots.traces "$scratch"/order-{swizzle_128,pipeline}.json --data "$folder/gemm-order.json"
