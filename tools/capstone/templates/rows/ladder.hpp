// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "what it is about, in one line";

  auto ladder = ladder_over<mine::Problem>("capstone_name", "out[r] = sum of row r of in, fp32",
                                           {"rows", "cols"});
  ladder.roof = Roof::hbm_read;
  ladder.gpu_size = {32768, 8192};  // timed on a GPU: several times any L2
  ladder.check_size = {512, 1024};  // compared with the reference
  ladder.trace_size = {64, 512};    // counted, at this size
  ladder.test_sizes = {{1, 1},   {1, 32},  {31, 33},  {32, 32},   {33, 31},
                       {64, 64}, {65, 63}, {257, 17}, {97, 101},  {3, 1021},
                       {128, 3}, {1, 509}, {509, 1},  {100, 300}, {256, 96}};
  ladder.levels = rows<mine::Naive, mine::WarpPerRow>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
