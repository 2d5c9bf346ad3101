// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "what it is about, in one line";

  auto ladder = ladder_over<mine::Problem>(
      "capstone_name", "out = in plus its four neighbours, fp32", {"rows", "cols"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {16384, 16384};  // timed on a GPU: several times any L2
  ladder.check_size = {512, 768};    // compared with the reference
  ladder.trace_size = {128, 96};     // counted, at this size
  ladder.test_sizes = {{1, 1},   {1, 32},  {31, 1},   {31, 33}, {32, 32}, {33, 31},
                       {33, 65}, {60, 68}, {63, 65},  {64, 64}, {65, 63}, {128, 64},
                       {1, 509}, {509, 1}, {97, 101}, {3, 1021}};
  ladder.levels = rows<mine::Naive, mine::Coalesced>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
