// SPDX-License-Identifier: MIT
// Chapter 15: its ladder.
#pragma once

#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "generated/chapter_15_levels.hpp"

namespace cookbook {

/// Chapter 5's last level, without its claims about speed, which are about the level before it.
struct LastOfChapter5AtHome : gemm::HoistedAddresses<bf16> {
  static Claims claims(const Problem& p) { return mechanism(HoistedAddresses::claims(p)); }
};

inline Chapter chapter_15() {
  using namespace gemm;
  Chapter chapter;
  auto ladder = ladder_over<Problem>("gemm", "C = A B, bf16, by mma.sync in 99 KB of shared memory",
                                     {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::mma_bf16;
  ladder.gpu_size = {8192, 8192, 8192};
  ladder.check_size = {384, 512, 320};
  ladder.trace_size = {256, 256, 320};  // two tiles, ten k-blocks: every ring of stages wraps
  ladder.test_sizes = {{1, 8, 8},      {8, 8, 1000},   {31, 40, 64},    {64, 64, 64},
                       {128, 256, 32}, {127, 136, 72}, {129, 264, 128}, {257, 120, 200},
                       {97, 104, 448}, {128, 128, 0},  {384, 512, 320}, {16, 1000, 48}};
  ladder.levels = rows<LastOfChapter5AtHome, MmaTmaTiles, EmptyBarriers, MmaProducer, MmaPersistent,
                       MmaTmaStore>();
  chapter.ladders = {ladder};
  chapter.exercises = {make_level<ExerciseHoisted>(), make_level<ExerciseFullAndEmpty>()};
  return chapter;
}

}  // namespace cookbook
