// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "what it is about, in one line";

  auto ladder = ladder_over<mine::Problem>("capstone_name", "C = A B in fp32", {"M", "N", "K"});
  ladder.layout = "NN";
  ladder.roof = Roof::fp32;
  ladder.gpu_size = {4096, 4096, 4096};  // timed on a GPU
  ladder.check_size = {256, 192, 160};   // compared with the reference
  ladder.trace_size = {96, 64, 64};      // counted, at this size
  ladder.test_sizes = {{1, 1, 1},    {1, 1, 100},  {1, 129, 33}, {129, 1, 33}, {31, 32, 33},
                       {33, 31, 32}, {64, 64, 8},  {63, 65, 9},  {65, 63, 7},  {101, 67, 71},
                       {96, 20, 40}, {20, 96, 40}, {66, 130, 1}, {40, 36, 131}};
  ladder.levels = rows<mine::Naive, mine::SharedTile>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
