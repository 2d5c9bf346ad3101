// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Sparse attention by index lists: gathered rows in tensor cores";

  auto ladder = ladder_over<sparse_attention::Problem>(
      "sparse_attention", "attention of every query over its list of keys, 64 per head, bf16",
      {"queries", "heads", "keys", "listed"});
  ladder.dtype = "bf16";
  ladder.roof = Roof::mma_bf16;
  ladder.gpu_size = {2048, 64, 65536, 2048};  // timed on a GPU
  ladder.check_size = {16, 4, 128, 32};       // compared with the reference
  ladder.trace_size = {8, 8, 64, 16};         // counted, at this size
  ladder.test_sizes = {{1, 1, 1, 1},    {1, 1, 40, 40}, {3, 5, 33, 17},
                       {2, 16, 65, 32}, {17, 3, 9, 3},  {5, 2, 300, 129}};
  ladder.levels = rows<sparse_attention::Naive>();

  chapter.ladders = {ladder};
  return chapter;
}

}  // namespace cookbook
