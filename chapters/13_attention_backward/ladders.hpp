// SPDX-License-Identifier: MIT
// The ladder of attention's gradients, without levels: for this chapter and for library/attention.
#pragma once

#include <string>
#include <utility>

#include "chapters/13_attention_backward/problem.hpp"
#include "common/harness/contract/level.hpp"

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

}  // namespace cookbook
