// SPDX-License-Identifier: MIT
// Level 2: a second consumer warpgroup. One promotes while the other multiplies.
#pragma once

#include "chapters/12_fp8/level_1_promoted.cuh"

namespace cookbook::fp8 {

namespace two_warpgroups {

struct Config : promoted::Config {
  // [quote two_warpgroups]
  static constexpr int kBlockM = 128;
  static constexpr int kConsumers = 2;  // 64 rows each
  static constexpr int kThreads = 128 * (1 + kConsumers);
  // [end quote]
};

}  // namespace two_warpgroups

struct TwoWarpgroups : promoted::LevelOn<two_warpgroups::Config> {
  static constexpr LevelText text{
      .name = "two_warpgroups",
      .changed = "tiles of 128 x 128, computed by two consumer warpgroups",
      .expect =
          "1.4x: a warpgroup's promotion takes a quarter of the time of the other's wgmma, so the "
          "tensor cores need not idle; twice as many FMAs per byte of B",
      .cost = "128 more threads",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.4)};
  }
};

}  // namespace cookbook::fp8
