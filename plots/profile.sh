#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nsight Compute on every level of a chapter's headline ladder: bytes through device memory, L2 and L1.
#   plots/profile.sh 3 [--ladder NAME] [--size 8192x8192] [--out FILE]
# Writes plots/results/<gpu>/profile-<chapter>.json, which the figures use. Needs a GPU, nvcc and ncu,
# and permission to read counters (docs/profiling.md says what to do where that is refused).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { echo "usage: ./run profile CHAPTER [--ladder NAME] [--size SIZE] [--out FILE]" >&2; exit 2; }
[[ "${1:-}" =~ ^[0-9]+$ ]] || usage
command -v nvidia-smi >/dev/null || { echo "profile: needs an NVIDIA GPU (nvidia-smi is not here)" >&2; exit 1; }
if ! command -v ncu >/dev/null && [ -x /usr/local/cuda/bin/ncu ]; then
  export PATH="/usr/local/cuda/bin:$PATH"
fi
command -v ncu >/dev/null || { echo "profile: needs Nsight Compute (ncu is not on the PATH)" >&2; exit 1; }
[ -x "build/cuda/chapter-$1" ] || BACKEND=cuda ./run build
exec python3 plots/profile_levels.py "$@"
