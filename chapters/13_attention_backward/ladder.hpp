// SPDX-License-Identifier: MIT
// Chapter 13: its ladders.
#pragma once

#include "chapters/13_attention_backward/problem.hpp"
#include "common/harness/contract/claiming.hpp"
#include "generated/chapter_13_levels.hpp"

namespace cookbook {

/// Gradients of attention, with or without a causal mask; no levels yet.
template <bool kCausal>
Ladder backward_ladder(std::string name, std::string title) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = {"batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"};
  ladder.dtype = "bf16";
  ladder.layout = "bshd";
  ladder.roof = Roof::wgmma_bf16;
  ladder.make_problem = attention::backward::Problem::make_any<kCausal>;
  ladder.gpu_size = {2, 16, 16, 8192, 8192, 128};
  ladder.check_size = {1, 2, 1, 150, kCausal ? 171 : 130, 128};
  ladder.trace_size = {1, 2, 1, 72, 136, 64};
  return ladder;
}

inline Chapter chapter_13() {
  using namespace attention::backward;
  Chapter chapter;
  auto full = backward_ladder<false>("backward", "gradients of attention, bf16, every key visible");
  full.test_sizes = {{1, 1, 1, 1, 1, 128}, {1, 2, 1, 65, 127, 128}, {2, 1, 1, 193, 63, 64}};
  auto causal = backward_ladder<true>(
      "backward_causal", "gradients of attention, bf16, causal mask aligned to the bottom right");
  causal.test_sizes = {{1, 1, 1, 1, 1, 64},   {1, 2, 1, 64, 129, 128}, {2, 2, 2, 129, 65, 64},
                       {1, 4, 2, 33, 97, 64}, {1, 1, 1, 140, 10, 128}, {1, 1, 1, 130, 260, 64}};
  full.levels = rows<Rows, Tiled, TensorCores, Wgmma, Specialised, Swapped, BulkAdd, InFlight>();
  causal.levels = rows<Rows, Tiled, TensorCores, Wgmma, Specialised, Swapped, BulkAdd, InFlight>();
  chapter.ladders = {full, causal};
  return chapter;
}

}  // namespace cookbook
