// SPDX-License-Identifier: MIT
// Level 8: NVFP4: four bits per element, a scale per 16 k. Level 7's kernel with four times as many
// scales per byte of A.
#pragma once

#include "chapters/14_blackwell/level_7_mxfp8.cuh"

namespace cookbook::microscaling {

struct BlackwellNvfp4 : scaled::LevelOn<ScaledConfig<Nvfp4, Tcgen05Element::e2m1>> {
  static constexpr LevelText text{
      .name = "nvfp4",
      .changed = "four bits per element, and a scale per 16 k that has a fraction",
      .expect = "half the bytes of level 7 and twice the documented rate",
      .cost = "160 columns for scales; a scale is an eighth of the bytes of the elements it is for",
  };
};

}  // namespace cookbook::microscaling
