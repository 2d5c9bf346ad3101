// SPDX-License-Identifier: MIT
// Level 4: tiles of 256 x 128. A warpgroup multiplies its 128 rows in two halves, with one set of
// accumulators.
#pragma once

#include "chapters/12_fp8/level_3_scales_by_tma.cuh"

namespace cookbook::fp8 {

namespace shared_accumulators {

struct Config : scales_by_tma::Config {
  static constexpr int kBlockM = 256;  // 128 rows per warpgroup: 128 sums and 64 accumulators
};

}  // namespace shared_accumulators

struct SharedAccumulators : scales_by_tma::LevelOn<shared_accumulators::Config> {
  static constexpr LevelText text{
      .name = "shared_accumulators",
      .changed =
          "tiles of 256 x 128: two wgmma batches per warpgroup and stage, one after the other",
      .expect = "1.1x: 85 FMAs per byte loaded instead of 64; L2 was the limit",
      .cost = "192 of 232 registers hold accumulators; 48 KB per stage",
  };
  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.08)};
  }
};

}  // namespace cookbook::fp8
