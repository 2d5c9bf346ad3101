// SPDX-License-Identifier: MIT
// Level 2: the same kernel, panels of 64 bytes with the 64-byte swizzle.
#pragma once

#include "chapters/07_swizzle/level_0_no_swizzle.cuh"

namespace cookbook::gemm {

struct Swizzle64 : tma_tiles::LevelOn<smem_swizzle::Config<Swizzle::b64>> {
  static constexpr LevelText text{
      .name = "swizzle_64",
      .changed = "panels of 64 bytes; two bits of the chunk index are XORed",
      .expect = "slightly faster: half as many boxes, rows of two sectors",
      .cost = "tiles aligned to 512 bytes",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().on("a").wavefronts_per_request(4),
            shared_loads().on("b").wavefronts_per_request(4), shared_loads().conflict_free(),
            tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
