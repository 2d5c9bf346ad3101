// SPDX-License-Identifier: MIT
// Level 4: the chunks of a tile's rows are permuted (XOR), so that a column of chunks covers all
// banks. The kernel is level 3's, with another Config.
#pragma once

#include "chapters/05_tensor_cores/level_3_mma_ldmatrix.cuh"

namespace cookbook::gemm {

namespace swizzled {

template <class T>
struct Config : mma_ldmatrix::Config<T> {
  /// Offset of chunk `chunk` (8 elements, 16 bytes) of row `row` in a tile of kCols columns. The
  /// eight rows of an 8x8 matrix store the same chunk at eight different positions, four banks
  /// each.
  template <int kCols>
  static __device__ __forceinline__ int tile_offset(int row, int chunk) {
    static_assert(kCols % 64 == 0, "whole lines of 128 bytes: eight chunks");
    // [quote swizzled]
    return row * kCols + (chunk ^ (row & 7)) * 8;
    // [end quote]
  }
};

}  // namespace swizzled

template <class T>
struct Swizzled : mma_ldmatrix::KernelLevel<swizzled::Config<T>> {
  static constexpr LevelText text{
      .name = "swizzled",
      .changed = "XOR swizzle: chunk c of row r lies at c ^ (r & 7)",
      .expect = "no bank conflict on either side: 4 wavefronts per ldmatrix.x4 instead of 32",
      .cost = "one XOR per address, no shared memory",
  };

  static Claims claims(const ProblemT<T>& p) {
    return {shared_loads().on("a").wavefronts_per_request(4),
            shared_loads().on("b").wavefronts_per_request(4),
            shared_loads().conflict_free(),
            shared_stores().on("fill").conflict_free(),
            global_loads().sectors_per_request(16),
            pair_stores(p),
            faster_than_previous(1.5)};
  }
};

}  // namespace cookbook::gemm
