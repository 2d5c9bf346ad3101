// SPDX-License-Identifier: MIT
// The ladders: their problem, their sizes and their levels, in order.
#pragma once

#include "common/harness/contract/claiming.hpp"
#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Matrix times vector: what decoding a language model waits for";
  chapter.speed_claims_for = "H200";

  auto ladder =
      ladder_over<gemv::Problem>("gemv", "y = A x, A and x of bf16, y of fp32", {"M", "K"});
  ladder.dtype = "bf16";
  ladder.roof = Roof::hbm_read;
  ladder.gpu_size = {8192, 8192};  // 128 MiB
  ladder.check_size = {256, 2048};
  ladder.trace_size = {64, 4096};  // two splits on a device of four SMs
  ladder.test_sizes = {{1, 1},  {1, 7},    {2, 8},    {3, 31},   {4, 64},   {5, 257},  {7, 1000},
                       {8, 24}, {33, 255}, {66, 256}, {9, 2049}, {1, 6151}, {3, 8200}, {6, 4096}};
  ladder.levels = rows<gemv::ThreadPerRow, gemv::WarpPerRow, gemv::Vectorised, gemv::RowsPerWarp,
                       gemv::SplitK>();

  auto few = ladder_over<gemv::Problem>("few_rows", "the same with few rows", {"M", "K"});
  few.dtype = "bf16";
  few.roof = Roof::hbm_read;
  few.gpu_size = {512, 65536};  // 64 MiB
  few.check_size = {16, 8192};
  few.trace_size = {8, 8192};
  few.test_sizes = {{2, 4100}, {5, 2055}};
  few.levels = {
      claiming(make_level<gemv::Vectorised>(), {}),
      claiming(make_level<gemv::RowsPerWarp>(),
               {at_least_previous(0.75, "512 rows are too few warps")}),
      claiming(make_level<gemv::SplitK>(),
               {faster_than_previous(3), against_library("cuBLAS", 1.0), fraction_of_roof(0.64)})};

  chapter.ladders = {ladder, few};
  chapter.exercises = rows<gemv::Merge>();
  return chapter;
}

}  // namespace cookbook
