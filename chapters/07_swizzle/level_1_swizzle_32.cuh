// SPDX-License-Identifier: MIT
// Level 1: the same kernel, panels of 32 bytes with the 32-byte swizzle.
#pragma once

#include "chapters/07_swizzle/level_0_no_swizzle.cuh"

namespace cookbook::gemm {

struct Swizzle32 : tma_tiles::LevelOn<smem_swizzle::Config<Swizzle::b32>> {
  static constexpr LevelText text{
      .name = "swizzle_32",
      .changed = "panels of 32 bytes; the 16-byte chunk index is XORed with address bit 7",
      .expect =
          "2x or more: no bank conflicts. But a tile is four panels: four boxes of 32-byte rows",
      .cost = "tiles aligned to 256 bytes",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().on("a").wavefronts_per_request(4),
            shared_loads().on("b").wavefronts_per_request(4), shared_loads().conflict_free(),
            tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.5)};
  }
};

}  // namespace cookbook::gemm
