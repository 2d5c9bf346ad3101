#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The bytes that every level of a chapter's ladder moves, for the figures.
#   plots/profile.sh 3 [--ladder NAME] [--size 8192x8192] [--out FILE]
#   plots/profile.sh all         the headline ladder of every chapter
# With a GPU: Nsight Compute, into plots/results/<gpu>/profile-<chapter>.json: bytes of device memory, L2 and
# L1, operations, and the energy of a launch (--no-energy: without). That needs nvcc, ncu and permission to read
# counters (docs/profiling.md says what to do where it is missing). Without one, or with BACKEND=simt: the counters of the SIMT backend, into
# plots/results/simt/chapter-<chapter>.json. With --ladder NAME the file's name ends in -NAME: it holds only that ladder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: ./run profile CHAPTER|all [--ladder NAME] [--size SIZE] [--out FILE]" >&2; exit 2; }
[[ "${1:-}" =~ ^([0-9]+|all)$ ]] || usage
chapter=$1
backend=$(./run --print-backend)
numbers=("$chapter")
if [ "$chapter" = all ]; then mapfile -t numbers < <(cut -d' ' -f1 chapters/contents.txt); fi

if [ "$backend" = simt ] && [ "$chapter" = all ]; then
  [ $# -eq 1 ] || usage
  status=0
  for chapter in "${numbers[@]}"; do plots/profile.sh "$chapter" || status=$?; done
  exit "$status"
fi

if [ "$backend" = simt ]; then
  BACKEND=simt ./run "$chapter" --list >/dev/null  # builds: counters of an old executable would carry new hashes
  shift
  out='' ladder='' one_level='' arguments=()
  while [ $# -gt 0 ]; do
    case "$1" in
      --out) out=${2:?--out needs a file} && shift ;;
      --out=*) out=${1#--out=} ;;
      --ladder) ladder=-${2:?--ladder needs a name} && arguments+=("$1" "$2") && shift ;;
      --ladder=*) ladder=-${1#--ladder=} && arguments+=("$1") ;;
      --level | --level=*) one_level=yes arguments+=("$1") ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  if [ -n "$one_level" ] && [ -z "$out" ]; then
    echo "profile: --level needs --out: one level must not take the place of the whole ladder's counters" >&2
    exit 2
  fi
  out=${out:-plots/results/simt/chapter-$chapter$ladder.json}
  mkdir -p "$(dirname "$out")"
  "build/simt/chapter-$chapter" "${arguments[@]}" --json "$out"
  echo "wrote $out"
  exit
fi

export PATH="$PATH:/usr/local/cuda/bin"
command -v ncu >/dev/null || { echo "profile: needs Nsight Compute (ncu is not on the PATH)" >&2; exit 1; }
# Also where there is an executable: it may be older than its sources.
if [ -f build/cuda/CMakeCache.txt ]; then
  cmake --build build/cuda -j "${JOBS:-$(nproc)}" --target "${numbers[@]/#/chapter-}" >&2
else
  for chapter in "${numbers[@]}"; do BACKEND=cuda ./run "$chapter" --list >/dev/null; done
fi
exec python3 -B plots/profile_levels.py "$@"
