// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "what it is about, in one line";

  auto ladder = ladder_over<mine::Problem>("capstone_name", "out[i] = 2 in[i] + 1, fp32", {"n"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {1 << 28};    // timed on a GPU: several times any L2
  ladder.check_size = {1 << 20};  // compared with the reference
  ladder.trace_size = {1 << 16};  // counted, at this size
  ladder.test_sizes = {{1}, {31}, {32}, {33}, {255}, {257}, {1021}, {4096}, {8193}, {65537}};
  ladder.levels = rows<mine::Naive, mine::Coalesced>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
