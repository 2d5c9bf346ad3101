// SPDX-License-Identifier: MIT
// Chapter 2: its ladder and the levels.
#pragma once

#include "generated/chapter_2_levels.hpp"

namespace cookbook {

inline Chapter chapter_2() {
  Chapter chapter;
  auto ladder =
      ladder_over<sgemm::Problem>("sgemm", "C = A B in fp32 on the CUDA cores", {"M", "N", "K"});
  ladder.layout = "NN";
  ladder.roof = Roof::fp32;
  ladder.gate_on_first_level = true;
  ladder.gpu_size = {4096, 4096, 4096};
  ladder.check_size = {256, 192, 160};
  ladder.trace_size = {128, 128, 64};
  ladder.test_sizes = {
      {1, 1, 1},      {1, 1, 100},     {1, 257, 33},  {257, 1, 33},  {31, 32, 33},   {33, 31, 32},
      {32, 33, 31},   {64, 64, 8},     {63, 65, 9},   {65, 63, 7},   {128, 128, 16}, {127, 129, 15},
      {129, 127, 17}, {101, 103, 107}, {300, 20, 40}, {20, 300, 40}, {130, 260, 1},  {40, 36, 259}};
  ladder.levels = rows<sgemm::Naive, sgemm::Coalesced, sgemm::SharedTile, sgemm::Register1d,
                       sgemm::Register2d, sgemm::Vectorised>();
  chapter.ladders = {ladder};
  chapter.exercises = rows<sgemm::RowTile, sgemm::MissingBarrier, sgemm::WideBroadcast>();
  return chapter;
}

}  // namespace cookbook
