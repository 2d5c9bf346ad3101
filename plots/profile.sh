#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The bytes that every level of a chapter's ladder moves, for the figures.
#   plots/profile.sh 3 [--ladder NAME] [--size 8192x8192] [--out FILE]
# With a GPU: Nsight Compute, into plots/results/<gpu>/profile-<chapter>.json: bytes of device memory, L2 and
# L1, and operations. That needs nvcc, ncu and permission to read counters (docs/profiling.md says what to do
# where it is refused). Without one, or with BACKEND=simt: the counters of the SIMT backend, into
# plots/results/simt/chapter-<chapter>.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: ./run profile CHAPTER [--ladder NAME] [--size SIZE] [--out FILE]" >&2; exit 2; }
[[ "${1:-}" =~ ^[0-9]+$ ]] || usage
chapter=$1
backend=$(./run --print-backend)

if [ "$backend" = simt ]; then
  [ -x "build/simt/chapter-$chapter" ] || BACKEND=simt ./run "$chapter" --list >/dev/null
  shift
  out=plots/results/simt/chapter-$chapter.json arguments=()
  while [ $# -gt 0 ]; do
    if [ "$1" = --out ] && [ $# -gt 1 ]; then out=$2 && shift; else arguments+=("$1"); fi
    shift
  done
  mkdir -p "$(dirname "$out")"
  "build/simt/chapter-$chapter" "${arguments[@]}" --json "$out"
  echo "wrote $out"
  exit
fi

export PATH="$PATH:/usr/local/cuda/bin"
command -v ncu >/dev/null || { echo "profile: needs Nsight Compute (ncu is not on the PATH)" >&2; exit 1; }
if [ ! -x "build/cuda/chapter-$chapter" ]; then
  if [ -f build/cuda/CMakeCache.txt ]; then
    cmake --build build/cuda -j "${JOBS:-$(nproc)}" --target "chapter-$chapter" >&2
  else
    BACKEND=cuda ./run "$chapter" --list >/dev/null
  fi
fi
exec python3 -B plots/profile_levels.py "$@"
