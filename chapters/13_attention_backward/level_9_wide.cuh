// SPDX-License-Identifier: MIT
// Level 9: tiles of 128 queries at head dimension 64, where dk and dv take half as many registers.
// Each barrier and each wait then serves twice as much work. The kernel is that of level 8.
#pragma once

#include "chapters/13_attention_backward/level_8_delayed.cuh"

namespace cookbook::attention::backward {

/// Two stages: a third one does not fit beside ds of 128 queries.
template <int kDim>
struct WideConfig : BulkAddConfig<kDim, kDim == 64 ? 128 : 64, kDim == 64 ? 2 : 3> {};

struct Wide : DelayedLevel<WideConfig> {
  static constexpr LevelText text{
      .name = "wide",
      .changed = "head dimension 64: 128 queries per tile",
      .expect =
          "1.1x: half as many waits, and each key that wgmma reads from shared memory serves twice "
          "as many queries",
      .cost = "two stages instead of three",
  };
};

}  // namespace cookbook::attention::backward
