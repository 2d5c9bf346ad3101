// SPDX-License-Identifier: MIT
// Chapter 6: its ladders and their levels.
#pragma once

#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "generated/chapter_6_levels.hpp"

namespace cookbook {

/// Chapter 5's last level, without its speed claims: those are about the roof of mma.sync.
struct LastOfChapter5 : gemm::HoistedAddresses<bf16> {
  static Claims claims(const Problem& p) { return mechanism(HoistedAddresses::claims(p)); }
};

inline Chapter chapter_6() {
  using namespace gemm;
  Chapter chapter;
  auto ladder = ladder_over<Problem>("gemm", "C = A B, bf16, fp32 accumulation", {"M", "N", "K"});
  ladder.dtype = "bf16";
  ladder.layout = "NN";
  ladder.roof = Roof::wgmma_bf16;
  ladder.gpu_size = {4096, 4096, 4096};
  ladder.check_size = {384, 512, 320};
  ladder.trace_size = {256, 256, 320};
  ladder.test_sizes = {{1, 8, 8},      {8, 8, 1000},    {31, 40, 64},    {64, 64, 64},
                       {128, 128, 64}, {127, 136, 72},  {129, 248, 128}, {128, 256, 64},
                       {136, 264, 56}, {257, 120, 200}, {16, 1000, 48},  {1000, 16, 104},
                       {97, 104, 448}, {192, 384, 8},   {128, 128, 0},   {384, 512, 320}};
  ladder.levels = rows<LastOfChapter5, TmaTiles, WgmmaTiles, WgmmaSwizzled, WgmmaPipeline,
                       WarpSpecialised, TwoConsumers, OneInFlight, TmaStore>();

  // The same kernel reads transposed operands: only the majors in its descriptors differ.
  const auto in_layout = [&](auto problem, const char* name, const char* layout) {
    auto other =
        ladder_over<decltype(problem)>(name, "the last level on other layouts", ladder.dims);
    other.dtype = ladder.dtype;
    other.layout = layout;
    other.roof = ladder.roof;
    other.gpu_size = ladder.gpu_size;
    other.check_size = ladder.check_size;
    other.trace_size = ladder.trace_size;
    other.test_sizes = {{8, 8, 8}, {128, 256, 64}, {136, 264, 72}, {248, 120, 200}, {64, 512, 128}};
    other.levels = rows<TmaStore>();
    return other;
  };

  chapter.ladders = {ladder, in_layout(LayoutProblem<bf16, false, true>{}, "gemm_nt", "NT"),
                     in_layout(LayoutProblem<bf16, true, false>{}, "gemm_tn", "TN"),
                     in_layout(LayoutProblem<bf16, true, true>{}, "gemm_tt", "TT")};
  chapter.exercises = {make_level<ExerciseDescriptor>(), make_level<ExerciseRelease>()};
  return chapter;
}

}  // namespace cookbook
