// SPDX-License-Identifier: MIT
// Chapter 11: four kernels, three levels each: untuned, the best fixed configuration, tuned.
#pragma once

#include "common/problems/gemm.hpp"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/11_autotuning/attention_problem.hpp"
#include "chapters/11_autotuning/rope_problem.hpp"
#include "chapters/11_autotuning/spaces.hpp"
#include "generated/chapter_11_levels.hpp"

namespace cookbook {
namespace autotuning {

// The problems without their levels: a space searches over these.

inline Ladder rmsnorm_ladder() {
  auto ladder = ladder_over<softmax::RmsProblem<bf16>>("rmsnorm", "RMSNorm, bf16: occupancy only",
                                                       {"rows", "cols"});
  ladder.dtype = "bf16";
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {8192, 8192};
  ladder.check_size = {61, 1000};
  ladder.trace_size = {40, 1024};
  ladder.test_sizes = {{1, 1},    {1, 8},    {2, 31},   {3, 32},   {5, 33},  {7, 257},
                       {130, 64}, {4, 2048}, {33, 519}, {1, 4099}, {64, 100}};
  return ladder;
}

/// kSplit: what a search runs on.
template <bool kSplit>
Ladder rope_ladder() {
  auto ladder = ladder_over<rope::ProblemT<kSplit>>(
      kSplit ? "rope_split" : "rope", "RoPE, bf16, in place", {"tokens", "heads", "head_dim"});
  ladder.dtype = "bf16";
  ladder.roof = Roof::hbm_copy;
  ladder.gpu_size = {16384, 32, 128};
  ladder.check_size = {37, 5, 64};
  ladder.trace_size = {8, 8, 128};
  ladder.test_sizes = {{1, 1, 2},  {1, 1, 16},  {3, 2, 30}, {31, 3, 64}, {32, 1, 128},
                       {33, 7, 6}, {2, 9, 258}, {5, 8, 80}, {64, 4, 32}, {1, 40, 128}};
  return ladder;
}
inline Ladder gemm_ladder() {
  auto ladder =
      ladder_over<gemm::Problem>("gemm", "C = A B, bf16: the full space", {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::wgmma_bf16;
  ladder.gpu_size = {4096, 4096, 4096};
  ladder.check_size = {264, 520, 200};
  ladder.trace_size = {256, 768, 320};
  ladder.test_sizes = {{1, 1, 1},       {8, 8, 136},    {31, 33, 65},  {127, 136, 72},
                       {129, 248, 128}, {255, 257, 63}, {16, 600, 48}, {97, 101, 201},
                       {128, 128, 0},   {264, 520, 200}};
  return ladder;
}

inline Ladder attention_ladder() {
  auto ladder = ladder_over<attention::tuned::Problem>(
      "attention", "attention, bf16, full or causal: two kernels",
      {"batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim", "halves"});
  ladder.dtype = "bf16";
  ladder.layout = "bshd";
  ladder.roof = Roof::wgmma_bf16;
  ladder.gpu_size = {2, 16, 16, 8192, 8192, 128, 2};
  ladder.check_size = {1, 2, 1, 200, 260, 128, 1};
  // One query tile, every key visible: then every configuration loads the same bytes.
  ladder.trace_size = {1, 4, 2, 40, 264, 128, 2};
  ladder.test_sizes = {{1, 1, 1, 1, 1, 128, 2},    {2, 2, 1, 1, 65, 128, 1},
                       {1, 2, 2, 65, 63, 128, 2},  {1, 4, 2, 33, 97, 128, 1},
                       {1, 1, 1, 31, 353, 128, 2}, {1, 2, 1, 129, 127, 128, 1},
                       {1, 1, 1, 193, 40, 128, 1}, {1, 1, 1, 64, 64, 64, 2}};
  return ladder;
}

inline Ladder with_levels(Ladder ladder, const tune::Space& space) {
  ladder.levels = {untuned(space), best_fixed(space), tuned(space)};
  return ladder;
}

}  // namespace autotuning

inline Chapter chapter_11() {
  using namespace autotuning;
  Chapter chapter;
  chapter.ladders = {with_levels(gemm_ladder(), gemm_space()),
                     with_levels(rmsnorm_ladder(), rmsnorm_space()),
                     with_levels(rope_ladder<false>(), rope_space()),
                     with_levels(attention_ladder(), attention_space())};
  chapter.exercises = {make_level<rope::ExerciseTable>(), make_level<rope::ExerciseInPlace>(),
                       make_level<rmsnorm::ExerciseKeptRow>()};
  return chapter;
}

}  // namespace cookbook
