#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a user would pick instead, on the same problem in the same run. cuBLAS and cuDNN are rows of the
# chapters themselves; this runs the comparisons that need Python packages (PyTorch, Triton, CUTLASS), each
# where its packages are installed, and says which are not.
#   plots/compare.sh             all of them, into build/compare/
#   plots/compare.sh attention   one; further arguments are passed on
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "compare: needs an NVIDIA GPU (there is nothing to time here)" >&2
  exit 1
fi
names=()
for file in plots/compare_*.py; do
  name=${file#plots/compare_}
  names+=("${name%.py}")
done
if [ $# -gt 0 ] && [[ "$1" != -* ]]; then
  [ -f "plots/compare_$1.py" ] || { echo "compare: no '$1'; there are: ${names[*]}" >&2; exit 2; }
  names=("$1")
  shift
fi
mkdir -p build/compare
status=0
for name in "${names[@]}"; do
  printf '== %s\n' "$name"
  python3 "plots/compare_$name.py" --out "build/compare/$name.json" "$@" || { status=1; echo "compare: $name did not finish" >&2; }
done
exit "$status"
