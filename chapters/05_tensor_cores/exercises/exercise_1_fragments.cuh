// SPDX-License-Identifier: MIT
// Exercise 5.1, a kernel with a hole: the fragments of B.
//
// A is loaded. Write the load of B: which row of the tile, and which chunk of it, must lane l
// address, so that pair[0], pair[1] become the lower and upper half of k of columns 0-7, and
// pair[2], pair[3] those of columns 8-15? Meet the claim: four wavefronts, no conflict.
#pragma once

#include "chapters/05_tensor_cores/level_4_swizzled.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace exercise_fragments {

struct Config : swizzled::Config<bf16> {
  /// The fragments of k step `step` of a warp's rows of A and columns of B. ldmatrix.x4 moves a
  /// 16x16 piece: lanes 0-15 give its rows' first chunks, lanes 16-31 the second ones. A is already
  /// in the layout of mma.sync. B is stored k by n and needed n by k, so ldmatrix transposes its
  /// 8x8 matrices.
  template <class C>
  static __device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                                        std::uint32_t (&b)[C::kMmaN][2],
                                                        const bf16* a_tile,
                                                        [[maybe_unused]] const bf16* b_tile,
                                                        const WarpTile& at, int step) {
    const int row = at.lane % 16, chunk = at.lane / 16;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      const int offset =
          C::template tile_offset<C::kBlockK>(at.row + i * 16 + row, step * 2 + chunk);
      ldmatrix_x4(a[i], a_tile + offset);  // [a]
    }
#pragma unroll
    for (int j = 0; j < C::kMmaN; j += 2) {
      std::uint32_t pair[4] = {};  // two neighbouring n8 fragments
      // >>> your part
      // Your code here: one ldmatrix_x4_trans. End its line with the tag: // [b]
      // <<< your part
      b[j][0] = pair[0], b[j][1] = pair[1];
      b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
    }
  }
};

}  // namespace exercise_fragments

struct ExerciseFragments : mma_ldmatrix::KernelLevel<exercise_fragments::Config> {
  static constexpr LevelText text{
      .name = "exercise_fragments",
      .changed = "ldmatrix of B, by you",
      .expect = "as level 4: right, and without bank conflicts",
  };

  static Claims claims(const Problem& p) {
    const std::int64_t tiles = (p.m + 127) / 128 * ((p.n + 127) / 128) * ((p.k + 63) / 64);
    return {shared_loads().on("b").wavefronts_per_request(4),
            shared_loads().on("b").requests(8.0 * 4 * 2 * static_cast<double>(tiles))};
  }
};

}  // namespace cookbook::gemm
