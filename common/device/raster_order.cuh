// SPDX-License-Identifier: MIT
/// @file
/// Raster orders: which tile of a matrix a block computes.
#pragma once

#include "common/device/cuda.cuh"

namespace cookbook {

/// A tile by its place among the tiles of a matrix: row m, column n.
struct TileIndex {
  int m, n;
};

/// The tile that block `block` computes: down groups of `group` tile rows, then to the next column.
/// Blocks that run at the same time share rows of A and columns of B in L2 (chapter 4).
__host__ __device__ __forceinline__ TileIndex grouped_tile(int block, int tiles_m, int tiles_n,
                                                           int group) {
  const int per_group = group * tiles_n;
  const int first = block / per_group * group;
  const int height = group < tiles_m - first ? group : tiles_m - first;
  const int within = block % per_group;
  return {first + within % height, within / height};
}

}  // namespace cookbook
