#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For a GPU machine without network: puts cuda.tile, TileGym's kernels and their cubins for sm_90 into one archive.
# Run it where there is network; no GPU is needed.
#
#     plots/contestants/prepare_cutile.sh [ARCHIVE]        build/compare/cutile.tgz
#
# Then, on the GPU machine (the same Python version, x86-64):
#
#     tar -xzf cutile.tgz -C /tmp && COOKBOOK_CUTILE_SITE=/tmp/tilesite ./run compare
#
# Environment: PYTHON, the interpreter (its version must be the GPU machine's; python3), JOBS, NICE. What is downloaded and
# built stays in build/compare/cutile; a second run compiles only what is new.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/plots/contestants
archive=$(realpath -m "${1:-$root/build/compare/cutile.tgz}")
work=$root/build/compare/cutile
# The paths of sources are in what is compiled, and so in the keys of the cache: the same folder on both machines.
site=/tmp/tilesite

mkdir -p "$work" "$(dirname "$archive")"
[ -x "$work/venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$work/venv"
python=$work/venv/bin/python
"$python" -m pip install -q 'cuda-tile[tileiras]'
# Without what it depends on: three of its modules are needed, and PyTorch is on the GPU machine.
"$python" -m pip install -q --no-deps --target "$work/tilegym" --upgrade tilegym
packages=$(echo "$work"/venv/lib/python*/site-packages)

rm -rf "$site"
mkdir -p "$site/cuda" "$site/bin" "$site/tilegym/ops/cutile"
cp -r "$packages"/cuda/tile "$site/cuda/"
cp -r "$packages"/cutile_cache "$packages"/cuda_tile-*.dist-info "$work"/tilegym/tilegym-*.dist-info "$site/"
cp "$work"/tilegym/tilegym/ops/cutile/{matmul,softmax,attention,utils}.py "$site/tilegym/ops/cutile/"
cp "$work"/tilegym/tilegym/{logger,experimental,autotune}.py "$site/tilegym/"
touch "$site"/tilegym/__init__.py "$site"/tilegym/ops/__init__.py "$site"/tilegym/ops/cutile/__init__.py
cp "$here/no_gpu/tilegym_backend.py" "$site/tilegym/backend.py"
find "$site" -name __pycache__ -prune -exec rm -rf {} +

# Compiled with the real compiler, which $work/venv has, over a libcuda without a GPU.
mkdir -p "$work/libcuda"
cc -shared -fPIC -O1 -o "$work/libcuda/libcuda.so.1" "$here/no_gpu/libcuda.c"
nice -n "${NICE:-10}" env LD_LIBRARY_PATH="$work/libcuda" PYTHONPATH="$site" CUDA_TILE_CACHE_DIR="$work/cache" \
    PYTHONDONTWRITEBYTECODE=1 "$python" "$here/no_gpu/compile_ahead.py"
mkdir "$site/cache"
cp "$work/cache/cache.db" "$site/cache/"

"$packages/nvidia/cu13/bin/tileiras" --version > "$site/bin/version.txt"
cp "$here/no_gpu/tileiras.sh" "$site/bin/tileiras"
chmod +x "$site/bin/tileiras"
tar -czf "$archive" -C "$(dirname "$site")" "$(basename "$site")"
du -h "$archive"
