// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "N-body: all pairs, limited by the FP32 pipe and not by loads";

  auto ladder = ladder_over<n_body::Problem>("n_body", "accelerations by all pairs, fp32", {"n"});
  ladder.roof = Roof::fp32;
  ladder.gpu_size = {65536};   // timed on a GPU: 4.3 billion pairs
  ladder.check_size = {1024};  // compared with the reference
  ladder.trace_size = {256};   // counted, at this size
  ladder.test_sizes = {{1}, {2}, {31}, {33}, {127}, {129}, {300}, {517}};
  ladder.levels = rows<n_body::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
