// SPDX-License-Identifier: MIT
// Level 6: the same kernel with tiles in the order of Hilbert's curve.
#pragma once

#include "chapters/07_swizzle/level_5_grouped.cuh"

namespace cookbook::gemm {

struct Hilbert : l2_order::LevelOn<HilbertOrder> {
  static constexpr LevelText text{
      .name = "hilbert",
      .changed = "tiles along Hilbert's curve",
      .expect =
          "as the best group size: a patch is compact at every scale, so no height must be chosen",
      .cost = "one loop per block, and idle blocks where C is no square",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.97,
                              "what it saves over the best group is a few per cent of the "
                              "traffic, and here tiles are twice as wide as high")};
  }
};

}  // namespace cookbook::gemm
