// SPDX-License-Identifier: MIT
// Chapter 12: its ladders and their levels.
#pragma once

#include "generated/chapter_12_levels.hpp"

namespace cookbook {

inline Chapter chapter_12() {
  using namespace fp8;
  Chapter chapter;
  auto ladder = ladder_over<Problem>(
      "fp8", "C = A B^T, e4m3 with a scale per 1 x 128 of A and 128 x 128 of B, bf16 result",
      {"M", "N", "K"});
  ladder.dtype = "e4m3";
  ladder.layout = "NT";
  ladder.roof = Roof::wgmma_fp8;
  ladder.gpu_size = {4096, 7168, 16384};
  ladder.check_size = {384, 512, 640};
  ladder.trace_size = {256, 384, 384};
  ladder.test_sizes = {{1, 8, 16},      {8, 8, 1040},    {31, 40, 128},   {64, 64, 64},
                       {127, 136, 144}, {129, 248, 256}, {256, 256, 128}, {255, 264, 272},
                       {300, 120, 400}, {16, 776, 128},  {520, 16, 96},   {97, 104, 448},
                       {192, 384, 16},  {128, 128, 0},   {33, 7, 130},    {512, 256, 384}};
  ladder.levels = rows<Dequantised, Promoted, TwoWarpgroups, ScalesByTma, SharedAccumulators,
                       Multicast, Persistent>();

  auto waves = ladder;
  waves.name = "fp8_waves";
  waves.title = "the same where tiles of 256 x 128 leave most of the last wave empty";
  waves.gpu_size = {4096, 2112, 7168};
  waves.check_size = {576, 512, 384};
  waves.trace_size = {192, 384, 256};
  // Each of the three tiles is chosen, and no tile is.
  waves.test_sizes = {{129, 248, 256}, {300, 120, 400}, {97, 104, 448}, {33, 7, 130},
                      {192, 384, 16},  {520, 16, 96},   {128, 128, 0}};
  waves.levels = rows<Persistent, TileChoice>();

  chapter.ladders = {ladder, waves};
  chapter.exercises = {make_level<ExerciseFactors>(), make_level<ExerciseWeights>()};
  return chapter;
}

}  // namespace cookbook
