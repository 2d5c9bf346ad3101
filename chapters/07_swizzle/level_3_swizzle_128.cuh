// SPDX-License-Identifier: MIT
// Level 3: the same kernel, panels of 128 bytes with the 128-byte swizzle.
#pragma once

#include "chapters/07_swizzle/level_0_no_swizzle.cuh"

namespace cookbook::gemm {

struct Swizzle128 : tma_tiles::LevelOn<smem_swizzle::Config<Swizzle::b128>> {
  static constexpr LevelText text{
      .name = "swizzle_128",
      .changed = "panels of 128 bytes; all three bits of the chunk index are XORed",
      .expect = "slightly faster again: one box of A, and TMA reads whole lines",
      .cost = "tiles aligned to 1024 bytes",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().on("a").wavefronts_per_request(4),
            shared_loads().on("b").wavefronts_per_request(4), shared_loads().conflict_free(),
            tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.98, "one box of A per tile is all that is left to save")};
  }
};

}  // namespace cookbook::gemm
