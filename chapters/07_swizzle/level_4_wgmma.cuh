// SPDX-License-Identifier: MIT
// Level 4: wgmma on panels of 32 and 64 bytes, between chapter 6's levels 2 (no swizzle) and 3 (128
// bytes). No counter shows the shared-memory reads of wgmma: the only evidence is time.
#pragma once

#include "chapters/06_tma/level_3_swizzle_128.cuh"

namespace cookbook::gemm {

namespace wgmma_swizzle {

template <Swizzle kMode>
struct Config : wgmma_tiles::Config {
  static constexpr Swizzle kSwizzle = kMode;
};

}  // namespace wgmma_swizzle

struct Wgmma32 : wgmma_tiles::LevelOn<wgmma_swizzle::Config<Swizzle::b32>> {
  static constexpr LevelText text{
      .name = "wgmma_32",
      .changed = "panels of 32 bytes instead of 16-byte rows",
      .expect = "faster: half as many boxes, whole sectors",
      .cost = "tiles aligned to 256 bytes",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.1)};
  }
};

struct Wgmma64 : wgmma_tiles::LevelOn<wgmma_swizzle::Config<Swizzle::b64>> {
  static constexpr LevelText text{
      .name = "wgmma_64",
      .changed = "panels of 64 bytes",
      .expect = "faster again, by less",
      .cost = "tiles aligned to 512 bytes",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
