// SPDX-License-Identifier: MIT
// Level 7: NVFP4: four bits per element, a scale per 16 k. Level 6's kernel with four times as many
// scales per byte of A.
#pragma once

#include "chapters/15_tma_with_mma/level_6_mxfp8.cuh"

namespace cookbook::microscaling {

struct MmaNvfp4 : mma_scaled::LevelOn<MmaScaledConfig<Nvfp4>> {
  static constexpr LevelText text{
      .name = "nvfp4",
      .changed = "four bits per element, and a scale per 16 k that has a fraction",
      .expect = "half the bytes of level 6, and half as many instructions",
      .cost = "three registers of scales per 64 k; a scale is an eighth of its elements' bytes",
  };
};

}  // namespace cookbook::microscaling
