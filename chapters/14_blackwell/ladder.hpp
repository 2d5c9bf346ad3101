// SPDX-License-Identifier: MIT
// Chapter 14: its ladders and their levels.
#pragma once

#include "generated/chapter_14_levels.hpp"

namespace cookbook {

/// What the tensor cores of sm_100 can do per second: kPerClock operations per SM and clock, as
/// NVIDIA's data sheet of the B200 gives for dense matrices at 1.85 GHz. 0 where the clock is not
/// known.
template <int kPerClock>
double documented_tensor_rate(const DeviceInfo& device) {
  return device.cc_major == 10 ? 1e6 * kPerClock * device.sm_count * device.clock_mhz : 0;
}

inline Chapter chapter_14() {
  using namespace gemm;
  Chapter chapter;
  chapter.model_capability = 100;
  auto ladder = ladder_over<Problem>("gemm", "C = A B, bf16, fp32 accumulation", {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::own;
  ladder.operations = {"FLOP", &documented_tensor_rate<8192>};
  ladder.gpu_size = {8192, 8192, 8192};
  ladder.check_size = {384, 512, 320};
  // Ten tiles, five of pairs, on four SMs: some take a third, into an accumulator that was read.
  ladder.trace_size = {256, 1280, 320};
  ladder.test_sizes = {{1, 8, 8},      {8, 8, 1000},    {31, 40, 64},    {128, 256, 64},
                       {127, 136, 72}, {129, 264, 128}, {257, 120, 200}, {97, 104, 448},
                       {128, 128, 0},  {16, 1000, 48}};
  ladder.levels = rows<BlackwellOneStage, BlackwellStages, BlackwellRoles, BlackwellTwoAccumulators,
                       BlackwellPairs, BlackwellLaunchControl>();

  auto mxfp8 = ladder_over<microscaling::Problem<microscaling::Mxfp8>>(
      "mxfp8", "C = A B^T, e4m3 with a power of two per 32 k, bf16 result", {"M", "N", "K"});
  mxfp8.dtype = "e4m3";
  mxfp8.layout = "NT";
  mxfp8.roof = Roof::own;
  mxfp8.operations = {"FLOP", &documented_tensor_rate<16384>};
  mxfp8.gpu_size = {8192, 8192, 8192};
  mxfp8.check_size = {129, 264, 144};
  mxfp8.trace_size = {40, 600, 384};  // five tiles on four SMs, few rows of each
  mxfp8.test_sizes = {{1, 8, 16},      {8, 8, 1040},    {127, 136, 144},
                      {129, 264, 128}, {257, 120, 272}, {97, 104, 448}};
  mxfp8.levels = rows<microscaling::BlackwellMxfp8>();

  auto nvfp4 = ladder_over<microscaling::Problem<microscaling::Nvfp4>>(
      "nvfp4", "C = A B^T, e2m1 with an e4m3 per 16 k, bf16 result", {"M", "N", "K"});
  nvfp4.dtype = "e2m1";
  nvfp4.layout = "NT";
  nvfp4.roof = Roof::own;
  nvfp4.operations = {"FLOP", &documented_tensor_rate<32768>};
  nvfp4.gpu_size = {8192, 8192, 8192};
  nvfp4.check_size = {129, 264, 288};
  nvfp4.trace_size = {40, 600, 768};
  nvfp4.test_sizes = {{1, 8, 32},      {8, 8, 1056},   {127, 136, 160},
                      {129, 264, 256}, {257, 120, 96}, {97, 104, 448}};
  nvfp4.levels = rows<microscaling::BlackwellNvfp4>();

  chapter.ladders = {ladder, mxfp8, nvfp4};
  chapter.exercises = {make_level<ExerciseCommit>(), make_level<ExerciseReaders>()};
  return chapter;
}

}  // namespace cookbook
