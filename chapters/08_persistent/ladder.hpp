// SPDX-License-Identifier: MIT
// Chapter 8: its ladders and their levels.
#pragma once

#include "chapters/07_swizzle/level_7_multicast.cuh"
#include "generated/chapter_8_levels.hpp"

namespace cookbook {

inline Chapter chapter_8() {
  using namespace gemm;
  Chapter chapter;
  auto ladder = ladder_over<Problem>("gemm", "C = A B, bf16, fp32 accumulation", {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::wgmma_bf16;
  ladder.gpu_size = {8192, 8192, 8192};
  ladder.check_size = {640, 768, 320};
  ladder.trace_size = {256, 768, 320};  // three cluster tiles on two clusters: one is cut
  ladder.test_sizes = {{1, 1, 1},       {8, 8, 1000},    {31, 33, 65},    {64, 64, 64},
                       {127, 136, 72},  {129, 248, 128}, {256, 256, 64},  {255, 257, 63},
                       {264, 520, 200}, {16, 1000, 48},  {1000, 16, 104}, {97, 101, 449},
                       {40, 36, 24},    {512, 768, 8},   {128, 128, 0},   {776, 264, 392},
                       {128, 1024, 640}};
  ladder.levels =
      rows<Multicast, PersistentStatic, PersistentDynamic, HiddenEpilogue, PingPong, StreamK>();

  chapter.ladders = {ladder};
  chapter.exercises = {make_level<ExercisePadRows>(), make_level<ExerciseBoxes>()};
  return chapter;
}

}  // namespace cookbook
