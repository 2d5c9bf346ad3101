// SPDX-License-Identifier: MIT
// Chapter 13: its ladders.
#pragma once

#include "chapters/13_attention_backward/ladders.hpp"
#include "common/harness/contract/claiming.hpp"
#include "generated/chapter_13_levels.hpp"

namespace cookbook {

inline Chapter chapter_13() {
  using namespace attention::backward;
  Chapter chapter;
  auto full = backward_ladder<false>("backward", "gradients of attention, bf16, every key visible");
  full.test_sizes = {{1, 1, 1, 1, 1, 128}, {1, 2, 1, 65, 67, 128}, {2, 1, 1, 130, 33, 64}};
  auto causal = backward_ladder<true>(
      "backward_causal", "gradients of attention, bf16, causal mask aligned to the bottom right");
  causal.test_sizes = {{1, 1, 1, 1, 1, 64},   {1, 2, 1, 64, 129, 128}, {2, 2, 2, 129, 65, 64},
                       {1, 4, 2, 33, 97, 64}, {1, 1, 1, 140, 10, 128}, {1, 1, 1, 130, 260, 64}};
  full.levels = rows<Rows, Tiled, TensorCores, Wgmma, Specialised, Swapped, BulkAdd, InFlight,
                     Delayed, Persistent>();
  causal.levels = rows<Tiled, TensorCores, Wgmma, Specialised, Swapped, BulkAdd, InFlight, Delayed,
                       Persistent>();

  // Where a block has few query tiles, and where the kernels around the main one take longer.
  auto brief = backward_ladder<true>("backward_short",
                                     "gradients of attention, bf16, causal mask, short sequences");
  brief.gpu_size = {8, 16, 16, 2048, 2048, 128};
  brief.trace_size = {1, 1, 1, 40, 136, 64};  // small: the kernels are those of the ladders above
  brief.check_size = {1, 1, 1, 40, 40, 128};
  brief.test_sizes = {{1, 1, 1, 40, 40, 128}};
  brief.levels = {claiming(make_level<Swapped>(), {}), claiming(make_level<BulkAdd>(), {}),
                  claiming(make_level<InFlight>(), {}), claiming(make_level<Delayed>(), {}),
                  make_level<Persistent>()};

  auto narrow = backward_ladder<true>(
      "backward_64", "gradients of attention, bf16, causal mask, head dimension 64");
  narrow.gpu_size = {2, 32, 32, 8192, 8192, 64};
  narrow.check_size = {1, 2, 1, 150, 171, 64};
  narrow.test_sizes = {{1, 2, 1, 129, 257, 64}, {1, 4, 2, 70, 10, 64}, {1, 1, 1, 300, 40, 64}};
  narrow.levels = {claiming(make_level<BulkAdd>(), {}), claiming(make_level<InFlight>(), {}),
                   claiming(make_level<Delayed>(), {}), make_level<Persistent>()};

  chapter.ladders = {full, causal, brief, narrow};
  chapter.exercises = {make_level<ExerciseKeyGradients>(), make_level<ExerciseWholeSectors>()};
  return chapter;
}

}  // namespace cookbook
