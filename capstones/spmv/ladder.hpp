// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Sparse matrix times vector: rows of any length at the speed of reading";

  auto ladder = ladder_over<spmv::Problem>(
      "spmv", "y = A x, A in CSR with rows of unequal length, fp32", {"rows", "cols", "mean"});
  ladder.roof = Roof::hbm_read;
  ladder.gpu_size = {1 << 22, 1 << 22, 32};  // 1 GB of values and columns
  ladder.check_size = {1 << 14, 1 << 14, 16};
  ladder.trace_size = {512, 1 << 14, 32};  // one row is in five blocks
  ladder.test_sizes = {{1, 1, 1},      {7, 5, 3},        {33, 64, 8},   {64, 1, 1},
                       {300, 700, 8},  {1000, 37, 20},   {4096, 64, 0}, {5000, 5000, 1},
                       {257, 900, 32}, {8, 30000, 8000}, {40000, 64, 2}};
  ladder.levels = rows<spmv::Scalar, spmv::Vector, spmv::Merge, spmv::Ahead>();

  chapter.ladders = {ladder};
  chapter.exercises = rows<spmv::Carries>();
  return chapter;
}

}  // namespace cookbook
