// SPDX-License-Identifier: MIT
// Problems of attention: what is measured, and the sizes that are tested. The chapter's ladders
// have them, and those of library/attention.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "chapters/10_flash_attention/problem.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook::attention {

/// A ladder of attention without levels, with the given element type and mask.
template <DType kType, bool kCausal>
Ladder attention_ladder(std::string name, std::string title) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = {"batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"};
  ladder.dtype = dtype_name(kType);
  ladder.layout = "bshd";
  ladder.roof = Roof::wgmma_bf16;
  ladder.make_problem = Problem::make_any<kType, kCausal>;
  ladder.gpu_size = {2, 16, 16, 8192, 8192, 128};
  ladder.check_size = {1, 2, 1, 300, kCausal ? 333 : 260, 128};
  ladder.trace_size = {1, 5, 1, 40, 264, 64};
  ladder.test_sizes = {{1, 1, 1, 1, 1, 128},
                       {1, 2, 1, 64, 127, 128},
                       {2, 2, 2, 129, 65, 64},
                       {1, 1, 1, 255, 257, 128},
                       {1, 2, 1, 193, 385, 64}};
  return ladder;
}

/// Prefill in bf16, with or without a mask.
template <bool kCausal>
Ladder prefill_ladder(std::string name, std::string title) {
  Ladder ladder = attention_ladder<DType::bf16, kCausal>(std::move(name), std::move(title));
  ladder.test_sizes = {{1, 1, 1, 1, 1, 64},      {2, 2, 1, 1, 65, 128},    {1, 1, 1, 63, 64, 64},
                       {1, 2, 2, 65, 63, 128},   {2, 1, 1, 127, 129, 64},  {1, 2, 1, 129, 127, 128},
                       {1, 1, 1, 31, 353, 128},  {1, 1, 1, 193, 385, 64},  {1, 6, 2, 33, 97, 128},
                       {1, 1, 1, 1000, 1, 64},   {1, 1, 1, 257, 521, 128}, {3, 4, 2, 32, 32, 64},
                       {1, 1, 1, 130, 1000, 64}, {1, 5, 1, 10, 1200, 128}};
  return ladder;
}

/// The ladders of both the chapter and library/attention, without levels: prefill, prefill_causal,
/// decode, and decode_causal in the given element type.
template <DType kDecodeCausal>
std::array<Ladder, 4> common_ladders() {
  auto decode =
      attention_ladder<DType::bf16, false>("decode", "attention, bf16, one query per sequence");
  decode.roof = Roof::hbm_read;
  decode.gpu_size = {64, 64, 8, 1, 8192, 128};
  decode.check_size = {2, 8, 2, 1, 600, 128};
  decode.trace_size = {1, 8, 1, 1, 1024, 128};
  decode.test_sizes = {{1, 1, 1, 1, 1, 64},    {2, 8, 1, 1, 63, 128},  {1, 8, 2, 1, 65, 64},
                       {3, 4, 4, 1, 127, 128}, {1, 32, 2, 1, 129, 64}, {1, 8, 1, 1, 1000, 128},
                       {1, 40, 2, 1, 257, 64}, {2, 6, 2, 3, 1037, 64}, {1, 8, 8, 5, 2049, 128}};

  auto decode_causal = attention_ladder<kDecodeCausal, true>(
      "decode_causal", "attention, a few new queries per sequence, causal mask");
  decode_causal.roof = Roof::hbm_read;
  decode_causal.gpu_size = {64, 64, 8, 4, 8192, 128};
  decode_causal.check_size = {2, 8, 2, 3, 500, 128};
  decode_causal.trace_size = {1, 8, 1, 2, 1024, 128};
  decode_causal.test_sizes = {{1, 1, 1, 1, 1, 64},
                              {2, 8, 1, 2, 63, 128},
                              {1, 8, 2, 4, 300, 64},
                              {1, 2, 1, 65, 33, 64},
                              {1, 4, 2, 17, 1025, 128}};

  return {prefill_ladder<false>("prefill", "attention, bf16, every key visible"),
          prefill_ladder<true>("prefill_causal",
                               "attention, bf16, causal mask aligned to the bottom right"),
          decode, decode_causal};
}

}  // namespace cookbook::attention
