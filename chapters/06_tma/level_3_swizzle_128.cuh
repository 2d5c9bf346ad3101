// SPDX-License-Identifier: MIT
// Level 3: the same kernel on tiles with the 128-byte swizzle. Only one constant differs.
#pragma once

#include "chapters/06_tma/level_2_wgmma.cuh"

namespace cookbook::gemm {

namespace wgmma_swizzled {

struct Config : wgmma_tiles::Config {
  // [quote swizzle_128]
  static constexpr Swizzle kSwizzle = Swizzle::b128;  // panels of 64 elements instead of 8
  // [end quote]
};

}  // namespace wgmma_swizzled

struct WgmmaSwizzled : wgmma_tiles::LevelOn<wgmma_swizzled::Config> {
  static constexpr LevelText text{
      .name = "swizzle_128",
      .changed = "tiles in panels of 128 bytes, swizzled by TMA (chapter 7)",
      .expect = "2x or more: 3 boxes per tile instead of 24, whole lines instead of half sectors",
      .cost = "tiles aligned to 1,024 bytes",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.2)};
  }
};

}  // namespace cookbook::gemm
