// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Radix sort: pairs of 32 bits, as few passes over memory as possible";

  auto ladder = ladder_over<radix_sort::Problem>(
      "radix_sort", "sorts pairs of a key and a value by key, stable, u32", {"n"});
  ladder.dtype = "u32";
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {1 << 25};    // timed on a GPU: 256 MiB in, 256 MiB out
  ladder.check_size = {1 << 14};  // compared with the reference
  ladder.trace_size = {1 << 10};  // counted, at this size
  ladder.test_sizes = {{1}, {2}, {31}, {33}, {255}, {257}, {1000}, {4099}};
  ladder.levels = rows<radix_sort::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
