// SPDX-License-Identifier: MIT
// Attention as a library: what is tested and measured of it.
#pragma once

#include "chapters/10_flash_attention/ladders.hpp"
#include "generated/levels.hpp"
#include "library/attention/attention.cuh"

namespace cookbook {

inline Chapter capstone() {
  using namespace attention;
  Chapter chapter;
  chapter.title = "library/attention: the kernel that suits the shape";
  chapter.ladders = {prefill_ladder(), prefill_causal_ladder(), prefill_f16_ladder(),
                     decode_ladder(), decode_causal_ladder()};
  for (Ladder& ladder : chapter.ladders) ladder.levels = rows<Attention>();
  return chapter;
}

}  // namespace cookbook
