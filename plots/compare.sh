#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a user would pick instead, on the same problem in the same run: cuBLAS, cuDNN and FlashAttention
# through PyTorch, Triton, cuTile, CUTLASS where installed. (cuBLAS and cuDNN are rows of the chapters as well.)
#   plots/compare.sh [softmax|gemm|attention ...] [--quick] [--out FILE]     plots/compare.py --help has the rest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PYTHONDONTWRITEBYTECODE=1
case " $* " in
  *" --help "* | *" -h "* | *" --build-only "*) ;;
  *)
    if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
      echo "compare: needs an NVIDIA GPU (there is nothing to time here)" >&2
      exit 1
    fi
    ;;
esac
if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
  export PATH="/usr/local/cuda/bin:$PATH"
fi
exec python3 plots/compare.py "$@"
