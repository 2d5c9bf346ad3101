// SPDX-License-Identifier: MIT
// The ladder: its problem, its sizes and its levels, in order.
#pragma once

#include "generated/levels.hpp"

namespace cookbook {

inline Chapter capstone() {
  Chapter chapter;
  chapter.title = "Convolution of an image: windows that overlap";
  chapter.speed_claims_for = "H200";

  auto ladder = ladder_over<convolution::Problem>(
      "convolution", "5 x 5 filter over an image, fp32, zeros outside", {"rows", "cols"});
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {16384, 16384};  // 1 GiB in, 1 GiB out
  ladder.check_size = {320, 640};
  // 26 tiles of the last level, 12 blocks on a device of four SMs: some use a stage twice.
  ladder.trace_size = {128, 1664};
  // Columns in units of four, which TMA supports; the tests add odd ones and other pitches.
  ladder.test_sizes = {{1, 4},  {3, 8},   {5, 68},  {64, 64},  {63, 60},
                       {65, 8}, {2, 260}, {130, 4}, {66, 132}, {2, 580}};
  ladder.levels = rows<convolution::Naive, convolution::HaloTile, convolution::RegisterColumns,
                       convolution::Tma, convolution::Pairs>();

  chapter.ladders = {ladder};
  chapter.exercises = rows<convolution::Release>();
  return chapter;
}

}  // namespace cookbook
