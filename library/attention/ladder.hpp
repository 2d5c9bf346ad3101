// SPDX-License-Identifier: MIT
// Attention as a library: what is tested and measured of it.
#pragma once

#include "chapters/10_flash_attention/ladders.hpp"
#include "chapters/13_attention_backward/ladders.hpp"
#include "generated/levels.hpp"
#include "library/attention/attention.cuh"
#include "library/attention/backward.cuh"

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
  // Small: chapter 13 tests the kernel, and here are the choice and the order of the additions.
  auto gradients = backward_ladder<false>("backward", "gradients of attention, bf16");
  auto masked = backward_ladder<true>("backward_causal", "gradients of attention, bf16, causal");
  gradients.check_size = gradients.trace_size = {1, 1, 1, 40, 136, 64};
  masked.check_size = masked.trace_size = {1, 2, 1, 70, 136, 128};
  gradients.test_sizes = {{1, 1, 1, 9, 70, 64}};
  masked.test_sizes = {{1, 1, 1, 70, 10, 64}};
  gradients.levels = masked.levels = rows<backward::Backward, backward::Deterministic>();
  chapter.ladders = {full, causal, f16, decode, decode_causal, gradients, masked};
  return chapter;
}

}  // namespace cookbook
