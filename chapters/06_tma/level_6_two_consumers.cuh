// SPDX-License-Identifier: MIT
// Level 6: tiles of 128 x 256, each computed by two consumer warpgroups. The kernel is level 5's.
#pragma once

#include "chapters/06_tma/level_5_warp_specialised.cuh"

namespace cookbook::gemm {

namespace two_consumers {

struct Config : DefaultOperands {
  // [quote two_consumers]
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kStages = 4;
  static constexpr int kConsumers = 2;  // warpgroups, half of the tile's rows each
  static constexpr int kThreads = 128 * (1 + kConsumers);  // + the producer's warpgroup
  static constexpr int kBlocksPerSm = 1;
  // [end quote]
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;  // 40 + 2 x 232 = 3 x 168
};

}  // namespace two_consumers

struct TwoConsumers : warp_specialised::LevelOn<two_consumers::Config> {
  static constexpr LevelText text{
      .name = "two_consumers",
      .changed = "128 x 256 tiles: two consumer warpgroups with 64 rows each",
      .expect =
          "1.2x: 43 FMAs per byte loaded instead of 32, and one warpgroup computes while the other "
          "waits",
      .cost = "192 KB of shared memory: one block per SM",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.02)};
  }
};

}  // namespace cookbook::gemm
