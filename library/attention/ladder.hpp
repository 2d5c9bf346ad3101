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
  auto [full, causal, decode, decode_causal] = common_ladders<DType::f16>();
  auto f16 = attention_ladder<DType::f16, true>("prefill_f16", "attention, fp16, causal mask");
  full.levels = rows<LastWave, Prefill, Attention>();
  causal.levels = full.levels;
  f16.levels = full.levels;
  decode.levels = rows<OneLaunch, Decode, Attention>();
  decode_causal.levels = decode.levels;
  chapter.ladders = {full, causal, f16, decode, decode_causal};
  return chapter;
}

}  // namespace cookbook
