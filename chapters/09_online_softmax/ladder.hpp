// SPDX-License-Identifier: MIT
// Chapter 9: the ladders, in order. The last three are sidebars.
#pragma once

#include "chapters/09_online_softmax/exercises/exercise_1_one_read.cuh"
#include "chapters/09_online_softmax/exercises/exercise_2_reused_table.cuh"
#include "chapters/09_online_softmax/level_0_three_passes.cuh"
#include "chapters/09_online_softmax/level_1_block_per_row.cuh"
#include "chapters/09_online_softmax/level_2_online.cuh"
#include "chapters/09_online_softmax/level_3_warp_shuffles.cuh"
#include "chapters/09_online_softmax/level_4_vectorised.cuh"
#include "chapters/09_online_softmax/level_5_on_chip.cuh"
#include "chapters/09_online_softmax/level_6_cluster.cuh"
#include "chapters/09_online_softmax/level_7_prefetched.cuh"
#include "chapters/09_online_softmax/rms_level_0_two_passes.cuh"
#include "chapters/09_online_softmax/sidebar_divergence.cuh"
#include "chapters/09_online_softmax/sidebar_fast_math.cuh"

namespace cookbook {

/// A ladder over rows: what all of this chapter's share. 1 GiB is moved at `gpu_size`.
template <class P>
Ladder row_ladder(std::string name, std::string title, Size gpu_size, Size check_size) {
  auto ladder = ladder_over<P>(std::move(name), std::move(title), {"rows", "cols"});
  ladder.gpu_size = std::move(gpu_size);
  ladder.check_size = std::move(check_size);
  // Rows longer than a block of 512 threads holds, and enough of them for blocks to take several.
  ladder.trace_size = {32, 20480};
  // Around 8, 32, 64 ... threads a row, odd lengths, few and many rows, rows for clusters.
  ladder.test_sizes = {{1, 1},    {3, 7},    {5, 31},     {4, 33},    {33, 8},    {67, 256},
                       {9, 257},  {7, 1000}, {3, 1024},   {5, 1028},  {70, 1100}, {2, 2047},
                       {2, 4097}, {3, 6000}, {2, 16384},  {2, 16392}, {1, 40000}, {1, 40003}};
  return ladder;
}

/// The smaller shapes, for sidebars.
inline Ladder sidebar_ladder(std::string name, std::string title, Size gpu_size) {
  auto ladder = row_ladder<softmax::Problem<float>>(std::move(name), std::move(title),
                                                    std::move(gpu_size), {64, 4096});
  ladder.trace_size = {8, 4096};
  ladder.test_sizes = {{1, 1}, {5, 31}, {4, 36}, {3, 1024}, {2, 4092}};
  return ladder;
}

inline Chapter chapter_9() {
  using namespace softmax;
  Chapter chapter;
  chapter.number = 9;
  chapter.title = "Online softmax at the speed of a copy";

  auto f32 = row_ladder<Problem<float>>("softmax", "softmax of every row, fp32", {4096, 32768},
                                        {64, 20480});
  f32.levels = rows<ThreePasses<float>, BlockPerRow<float>, Online<float>, WarpShuffles<float>,
                    Vectorised<float>, OnChip<Softmax<float>>, Cluster<Softmax<float>>,
                    Prefetched<Softmax<float>>>();

  auto b16 = row_ladder<Problem<bf16>>("softmax_bf16", "softmax of every row, bf16", {8192, 32768},
                                       {64, 20480});
  b16.dtype = "bf16";
  b16.levels = rows<ThreePasses<bf16>, BlockPerRow<bf16>, Online<bf16>, WarpShuffles<bf16>,
                    Vectorised<bf16>, OnChip<Softmax<bf16>>, Cluster<Softmax<bf16>>,
                    Prefetched<Softmax<bf16>>>();

  auto rms = row_ladder<RmsProblem<float>>("rmsnorm", "RMSNorm of every row, fp32", {16384, 8192},
                                           {64, 8192});
  rms.trace_size = {12, 4096};
  rms.levels = rows<RmsTwoPasses<float>, OnChip<RmsNorm<float>>, Prefetched<RmsNorm<float>>>();

  auto rms_b16 = row_ladder<RmsProblem<bf16>>("rmsnorm_bf16", "RMSNorm of every row, bf16",
                                              {32768, 8192}, {64, 8192});
  rms_b16.dtype = "bf16";
  rms_b16.trace_size = {12, 4096};
  rms_b16.levels = rows<RmsTwoPasses<bf16>, OnChip<RmsNorm<bf16>>, Prefetched<RmsNorm<bf16>>>();

  auto alone = sidebar_ladder(
      "online_alone", "sidebar: levels 1 and 2 where L1 holds the row", {131072, 1024});
  alone.levels = rows<BlockPerRow<float>, Online<float>>();

  auto divergence =
      sidebar_ladder("divergence", "sidebar: three ways to update (max, sum)", {32768, 4096});
  divergence.levels = rows<Updated<BranchUpdate>, Updated<BothUpdate>, Updated<SelectUpdate>>();

  auto fast_math = sidebar_ladder("fast_math", "sidebar: level 5 with three exponentials",
                                  {32768, 4096});
  fast_math.levels =
      rows<Exponential<AccurateExp>, Exponential<IntrinsicExp>, Exponential<FlushedExp>>();

  chapter.ladders = {f32, b16, rms, rms_b16, alone, divergence, fast_math};
  chapter.exercises = {make_level<OneRead>(), make_level<ReusedTable>()};
  return chapter;
}

}  // namespace cookbook
