// SPDX-License-Identifier: MIT
// Chapter 4: its ladder and the levels.
#pragma once

#include "chapters/02_tiling/level_5_vectorised.cuh"
#include "generated/chapter_4_levels.hpp"

namespace cookbook {

inline Chapter chapter_4() {
  Chapter chapter;
  auto ladder =
      ladder_over<sgemm::Problem>("sgemm", "C = A B in fp32 on the CUDA cores", {"M", "N", "K"});
  ladder.layout = "NN";
  ladder.roof = Roof::fp32;
  ladder.gate_on_first_level = true;
  ladder.gpu_size = {4096, 4096, 4096};
  ladder.check_size = {256, 192, 160};
  ladder.trace_size = {128, 256, 96};
  ladder.test_sizes = {{1, 1, 1},       {1, 1, 100},    {1, 257, 33},   {257, 1, 33},
                       {31, 32, 33},    {33, 31, 32},   {32, 33, 31},   {64, 64, 8},
                       {63, 65, 9},     {128, 256, 64}, {127, 255, 65}, {129, 257, 63},
                       {101, 103, 107}, {130, 260, 1},  {40, 36, 259},  {1200, 20, 24}};
  ladder.levels = rows<sgemm::Vectorised, sgemm::RegisterPrefetch, sgemm::AsyncCopy,
                       sgemm::Multistage, sgemm::WarpTile, sgemm::WideTile, sgemm::FragmentPrefetch,
                       sgemm::BlockOrder, sgemm::AnyRegister>();
  chapter.ladders = {ladder};
  chapter.exercises = rows<sgemm::CountedStages, sgemm::EarlyFill, sgemm::Lanes>();
  return chapter;
}

}  // namespace cookbook
