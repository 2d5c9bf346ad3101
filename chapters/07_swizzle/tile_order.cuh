// SPDX-License-Identifier: MIT
/// @file
/// Raster orders: which tile of C each block computes. Blocks that run at the same time should need
/// the same rows of A and columns of B: what one block has loaded, the others find in L2.
#pragma once

#include "chapters/06_tma/tma_level.cuh"
#include "common/device/raster_order.cuh"

namespace cookbook::gemm {

/// kRows rows of tiles at a time, column by column:  0 2 4 6
///                                                   1 3 5 7   (kRows = 2)
template <int kRows>
struct GroupedOrder : RowMajorOrder {
  static __host__ __device__ bool tile(int block, int tiles_m, int tiles_n, TileIndex& tile) {
    tile = grouped_tile(block, tiles_m, tiles_n, kRows);
    return true;
  }
};

/// The order of Hilbert's curve over the smallest square, with a power of two as its side, that
/// holds all tiles. Any run of consecutive blocks covers a compact patch, whatever its length.
/// Blocks outside of C have no work.
struct HilbertOrder {
  static __host__ __device__ int side(int tiles_m, int tiles_n) {
    int side = 1;
    while (side < tiles_m || side < tiles_n) side *= 2;
    return side;
  }
  static unsigned blocks(int tiles_m, int tiles_n) {
    const unsigned s = static_cast<unsigned>(side(tiles_m, tiles_n));
    return tiles_m == 0 || tiles_n == 0 ? 0 : s * s;
  }
  static __host__ __device__ bool tile(int block, int tiles_m, int tiles_n, TileIndex& tile) {
    int x = 0, y = 0;
    const int all = side(tiles_m, tiles_n);
    // [quote hilbert]
    for (int s = 1; s < all; s *= 2) {  // from the smallest square outwards
      const int right = 1 & (block / 2), down = 1 & (block ^ right);
      if (down == 0) {  // this quarter of the curve is rotated
        if (right == 1) {
          x = s - 1 - x;
          y = s - 1 - y;
        }
        const int old_x = x;
        x = y;
        y = old_x;
      }
      x += s * right;
      y += s * down;
      block /= 4;
    }
    // [end quote]
    tile = {y, x};
    return y < tiles_m && x < tiles_n;
  }
};

}  // namespace cookbook::gemm
