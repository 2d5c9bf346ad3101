#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Records the requests whose pictures the chapters show again, on the SIMT backend.
#   plots/pictures.sh            into plots/results/simt/pictures; then ./run plots draws them
#   plots/pictures.sh FOLDER     into another folder (the test that compares them)
# Needs the programs of the SIMT backend: BACKEND=simt ./run 1, 3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${COOKBOOK_BUILD:-build/simt} folder=${1:-plots/results/simt/pictures}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"

record() {  # record <chapter> <ladder> <level>...
  local level
  for level in "${@:3}"; do
    "$build/chapter-$1" --ladder "$2" --level "$level" --explain --draw "$scratch" >"$scratch/log" ||
      { cat "$scratch/log" >&2; exit 1; }
    cp "$scratch/$2-$level.json" "$folder/"
  done
}

record 1 copy strided coalesced
record 3 transpose tile padded swizzled vectorised
