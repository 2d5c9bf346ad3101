// SPDX-License-Identifier: MIT
// Exercise 7.2, a planted bug: a grouped order that is right only for some shapes. Find the
// smallest shape that fails, say which tiles no block computes, and repair it.
#pragma once

#include "chapters/07_swizzle/level_5_grouped.cuh"

namespace cookbook::gemm {

namespace exercise_groups {

/// kRows rows of tiles at a time, column by column.
template <int kRows>
struct Order : GroupedOrder<kRows> {
  static __host__ __device__ bool tile(int block, int /*tiles_m*/, int tiles_n, TileIndex& tile) {
    const int per_group = kRows * tiles_n;
    const int first = block / per_group * kRows;
    tile = {first + block % per_group % kRows, block % per_group / kRows};
    return true;
  }
};

}  // namespace exercise_groups

struct ExerciseGroups : l2_order::LevelOn<exercise_groups::Order<4>> {
  static constexpr LevelText text{
      .name = "exercise_groups",
      .changed = "grouped order, wrong for some shapes",
      .expect = "every tile of C computed once, whatever the shape",
      .ladder = "l2_order",
  };

  static Claims claims(const Problem& p) { return {tma_loads("a").requests(boxes_of_a(p))}; }
};

}  // namespace cookbook::gemm
