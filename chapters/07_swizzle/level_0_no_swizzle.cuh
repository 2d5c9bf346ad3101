// SPDX-License-Identifier: MIT
// Level 0: chapter 6's first kernel on tiles without a swizzle: rows of 128 bytes, one below the
// other.
#pragma once

#include "chapters/06_tma/level_1_tma_tiles.cuh"

namespace cookbook::gemm {

namespace smem_swizzle {

// [quote no_swizzle]
template <Swizzle kMode>
struct Config : tma_tiles::Config {
  static constexpr Swizzle kSwizzle = kMode;
};
// [end quote]

}  // namespace smem_swizzle

struct NoSwizzle : tma_tiles::LevelOn<smem_swizzle::Config<Swizzle::none>> {
  static constexpr LevelText text{
      .name = "no_swizzle",
      .changed = "tiles of 128-byte rows, not swizzled",
      .expect =
          "all eight rows of a matrix lie in the same four banks: ldmatrix takes eight times as "
          "long",
      .cost = "nothing: the chunks of 16 bytes lie where a plain copy would put them",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().on("a").wavefronts_per_request(32),
            shared_loads().on("b").wavefronts_per_request(32),
            shared_loads().on("a").wavefronts_over_ideal(8),
            tma_loads("a").requests(boxes_of_a(p))};
  }
};

}  // namespace cookbook::gemm
