// SPDX-License-Identifier: MIT
// Problems of attention: what is measured, and the sizes that are tested. The chapter's ladders
// have them, and those of library/attention.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook::attention {

/// A ladder of attention without levels, with the given element type and mask.
template <DType kType, bool kCausal>
Ladder attention_ladder(std::string name, std::string title, Size gpu, Size check, Size trace,
                        std::vector<Size> tests, Roof roof = Roof::wgmma_bf16) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = {"batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"};
  ladder.dtype = dtype_name(kType);
  ladder.layout = "bshd";
  ladder.roof = roof;
  ladder.make_problem = Problem::make_any<kType, kCausal>;
  ladder.gpu_size = std::move(gpu);
  ladder.check_size = std::move(check);
  ladder.trace_size = std::move(trace);
  ladder.test_sizes = std::move(tests);
  return ladder;
}

inline const Size kPrefillSize{2, 16, 16, 8192, 8192, 128}, kPrefillTrace{1, 5, 1, 40, 264, 64},
    kPrefillCheck{1, 2, 1, 300, 260, 128}, kCausalCheck{1, 2, 1, 300, 333, 128};
inline const std::vector<Size> kPrefillTests{
    {1, 1, 1, 1, 1, 64},      {2, 2, 1, 1, 65, 128},    {1, 1, 1, 63, 64, 64},
    {1, 2, 2, 65, 63, 128},   {2, 1, 1, 127, 129, 64},  {1, 2, 1, 129, 127, 128},
    {1, 1, 1, 31, 353, 128},  {1, 1, 1, 193, 385, 64},  {1, 6, 2, 33, 97, 128},
    {1, 1, 1, 1000, 1, 64},   {1, 1, 1, 257, 521, 128}, {3, 4, 2, 32, 32, 64},
    {1, 1, 1, 130, 1000, 64}, {1, 5, 1, 10, 1200, 128}};
inline const std::vector<Size> kFewTests{{1, 1, 1, 1, 1, 128},
                                         {1, 2, 1, 64, 127, 128},
                                         {2, 2, 2, 129, 65, 64},
                                         {1, 1, 1, 255, 257, 128},
                                         {1, 2, 1, 193, 385, 64}};

inline Ladder prefill_ladder() {
  return attention_ladder<DType::bf16, false>("prefill", "attention, bf16, every key visible",
                                              kPrefillSize, kPrefillCheck, kPrefillTrace,
                                              kPrefillTests);
}
inline Ladder prefill_causal_ladder() {
  return attention_ladder<DType::bf16, true>(
      "prefill_causal", "attention, bf16, causal mask aligned to the bottom right", kPrefillSize,
      kCausalCheck, kPrefillTrace, kPrefillTests);
}
inline Ladder prefill_f16_ladder() {
  return attention_ladder<DType::f16, true>("prefill_f16", "attention, fp16, causal mask",
                                            kPrefillSize, kCausalCheck, kPrefillTrace, kFewTests);
}
inline Ladder decode_ladder() {
  return attention_ladder<DType::bf16, false>("decode", "attention, bf16, one query per sequence",
                                              {64, 64, 8, 1, 8192, 128}, {2, 8, 2, 1, 600, 128},
                                              {1, 8, 1, 1, 1024, 128},
                                              {{1, 1, 1, 1, 1, 64},
                                               {2, 8, 1, 1, 63, 128},
                                               {1, 8, 2, 1, 65, 64},
                                               {3, 4, 4, 1, 127, 128},
                                               {1, 32, 2, 1, 129, 64},
                                               {1, 8, 1, 1, 1000, 128},
                                               {1, 40, 2, 1, 257, 64},
                                               {2, 6, 2, 3, 1037, 64},
                                               {1, 8, 8, 5, 2049, 128}},
                                              Roof::hbm_read);
}
inline Ladder decode_causal_ladder() {
  return attention_ladder<DType::f16, true>(
      "decode_causal", "attention, fp16, a few new queries per sequence, causal mask",
      {64, 64, 8, 4, 8192, 128}, {2, 8, 2, 3, 500, 128}, {1, 8, 1, 2, 1024, 128},
      {{1, 1, 1, 1, 1, 64},
       {2, 8, 1, 2, 63, 128},
       {1, 8, 2, 4, 300, 64},
       {1, 2, 1, 65, 33, 64},
       {1, 4, 2, 17, 1025, 128}},
      Roof::hbm_read);
}

}  // namespace cookbook::attention
