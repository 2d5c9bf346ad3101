// SPDX-License-Identifier: MIT
// Chapter 15: its ladders and their levels.
#pragma once

#include "chapters/10_flash_attention/ladders.hpp"
#include "chapters/10_flash_attention/level_2_tensor_cores.cuh"
#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "generated/chapter_15_levels.hpp"

namespace cookbook {

/// Chapter 5's last level, without its claims about speed, which are about the level before it.
struct LastOfChapter5AtHome : gemm::HoistedAddresses<bf16> {
  static Claims claims(const Problem& p) { return mechanism(HoistedAddresses::claims(p)); }
};

/// Chapter 10's level 2, likewise.
struct TensorCoresAtHome : attention::TensorCores {
  static Claims claims(const Problem& p) { return mechanism(TensorCores::claims(p)); }
};

inline Chapter chapter_15() {
  using namespace gemm;
  Chapter chapter;
  chapter.model_capability = 120;  // levels 6 and 7 need it
  auto ladder = ladder_over<Problem>("gemm", "C = A B, bf16, by mma.sync in 99 KB of shared memory",
                                     {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::mma_bf16;
  ladder.gpu_size = {8192, 8192, 8192};
  ladder.check_size = {384, 512, 320};
  ladder.trace_size = {256, 256, 320};  // two tiles, ten k-blocks: every ring of stages wraps
  ladder.test_sizes = {{1, 8, 8},      {8, 8, 1000},   {31, 40, 64},    {64, 64, 64},
                       {128, 256, 32}, {127, 136, 72}, {129, 264, 128}, {257, 120, 200},
                       {97, 104, 448}, {128, 128, 0},  {384, 512, 320}, {16, 1000, 48}};
  ladder.levels = rows<LastOfChapter5AtHome, MmaTmaTiles, EmptyBarriers, MmaProducer, MmaPersistent,
                       MmaTmaStore>();

  auto mxfp8 = ladder_over<microscaling::Problem<microscaling::Mxfp8>>(
      "mxfp8", "C = A B^T, e4m3 with a power of two per 32 k, bf16 result", {"M", "N", "K"});
  mxfp8.dtype = "e4m3";
  mxfp8.layout = "NT";
  mxfp8.roof = Roof::own;
  mxfp8.operations.name = "FLOP";  // NVIDIA states no rate
  mxfp8.gpu_size = {8192, 8192, 8192};
  mxfp8.check_size = {129, 264, 144};
  mxfp8.trace_size = {40, 600, 384};  // five tiles, three k-blocks: the ring of stages wraps
  mxfp8.test_sizes = {{1, 8, 16},      {8, 8, 1040},    {127, 136, 144},
                      {129, 264, 128}, {257, 120, 272}, {97, 104, 448}};
  mxfp8.levels = rows<microscaling::MmaMxfp8>();

  auto nvfp4 = ladder_over<microscaling::Problem<microscaling::Nvfp4>>(
      "nvfp4", "C = A B^T, e2m1 with an e4m3 per 16 k, bf16 result", {"M", "N", "K"});
  nvfp4.dtype = "e2m1";
  nvfp4.layout = "NT";
  nvfp4.roof = Roof::own;
  nvfp4.operations.name = "FLOP";
  nvfp4.gpu_size = {8192, 8192, 8192};
  nvfp4.check_size = {129, 264, 288};
  nvfp4.trace_size = {40, 600, 768};
  nvfp4.test_sizes = {{1, 8, 32},      {8, 8, 1056},   {127, 136, 160},
                      {129, 264, 256}, {257, 120, 96}, {97, 104, 448}};
  nvfp4.levels = rows<microscaling::MmaNvfp4>();

  auto cp_async = ladder;
  cp_async.name = "cp_async";
  cp_async.title = "sidebar: the pipeline by cp.async, for a GPU without TMA";
  cp_async.levels = rows<CpAsyncBarriers>();

  auto flash = attention::attention_ladder<DType::bf16, false>(
      "attention", "attention, bf16, by mma.sync in 99 KB of shared memory");
  flash.roof = Roof::mma_bf16;
  flash.levels =
      rows<TensorCoresAtHome, attention::LaneRows, attention::Vote, attention::TmaTwoStages>();

  chapter.ladders = {ladder, mxfp8, nvfp4, cp_async, flash};
  chapter.exercises = {make_level<ExerciseHoisted>(), make_level<ExerciseFullAndEmpty>()};
  return chapter;
}

}  // namespace cookbook
