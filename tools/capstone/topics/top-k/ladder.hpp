// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Top-k: the k largest of every row at the speed of reading them once";

  auto ladder = ladder_over<top_k::Problem>("top_k", "the k largest of every row, in order, fp32",
                                            {"rows", "cols", "k"});
  ladder.roof = Roof::hbm_read;
  ladder.gpu_size = {16384, 8192, 32};  // timed on a GPU: 512 MiB
  ladder.check_size = {256, 512, 8};    // compared with the reference
  ladder.trace_size = {64, 256, 4};     // counted, at this size
  ladder.test_sizes = {{1, 1, 1},   {1, 33, 33},  {3, 32, 5},   {33, 257, 8},
                       {130, 5, 2}, {2, 1025, 3}, {64, 96, 16}, {5, 700, 32}};
  ladder.levels = rows<top_k::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
