// SPDX-License-Identifier: MIT
// Level 7: swizzled rasterisation: blocks that run at the same time compute tiles of C that need
// the same parts of A and B, so they share them in L2. The kernel is level 6's, with another
// Config.
#pragma once

#include "chapters/04_double_buffering/level_6_fragment_prefetch.cuh"

namespace cookbook::sgemm {

/// The tile of C that block `index` computes. Groups of kGroup tile rows, one after the other;
/// within a group column by column. With kGroup = 2 and 3 tile columns:
///
///     row by row:  0  1  2      grouped:  0  2  4
///                  3  4  5                1  3  5
///                  6  7  8                6  7  8     (a last group of fewer rows)
template <class C>
__host__ __device__ __forceinline__ TileIndex grouped_tile(int index, int m, int n) {
  const int tiles_m = ceil_div(m, C::kM), tiles_n = ceil_div(n, C::kN);
  // [quote block_order]
  const int first_row = index / (C::kGroup * tiles_n) * C::kGroup;
  const int within = index - first_row * tiles_n;
  const int rows = tiles_m - first_row < C::kGroup ? tiles_m - first_row : C::kGroup;
  return {first_row + within % rows, within / rows};
  // [end quote]
}

struct BlockOrderConfig : FragmentPrefetchConfig {
  static constexpr int kGroup = 16;  // group size: rows of tiles traversed together
  template <class C>
  static __device__ __forceinline__ TileIndex tile(int index, int m, int n) {
    return grouped_tile<C>(index, m, n);
  }
};

struct BlockOrder : FragmentPrefetchLevel<BlockOrderConfig> {
  static constexpr LevelText text{
      .name = "block_order",
      .changed =
          "blocks that run together compute a compact patch of C: groups of 16 tile rows, column "
          "by column",
      .expect =
          "less traffic between L2 and memory, which hardly matters to an fp32 GEMM: the same, a "
          "little at 8192",
      .cost = "two divisions per block",
  };

  static Claims claims(const Problem&) {
    return copy_claims(
        {shared_loads().wavefronts_per_request(2),
         at_least_previous(
             0.96, "FP32 needs too few bytes for the order to matter; tensor cores will need it"),
         against_library("cuBLAS", 0.90)});
  }
};

}  // namespace cookbook::sgemm
