// SPDX-License-Identifier: MIT
// Chapter 7: its ladders and their levels.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "generated/chapter_7_levels.hpp"

namespace cookbook {

inline Chapter chapter_7() {
  using namespace gemm;
  Chapter chapter;
  auto smem = ladder_over<Problem>("smem_swizzle", "where TMA puts 16 bytes: conflicts of ldmatrix",
                                   {"M", "N", "K"});
  smem.dtype = "bf16";
  smem.layout = "NN";
  smem.roof = Roof::mma_bf16;
  smem.gpu_size = {4096, 4096, 4096};
  smem.check_size = {384, 384, 192};
  smem.trace_size = {128, 256, 256};
  smem.test_sizes = {{1, 8, 8},       {31, 40, 64},   {127, 136, 72}, {129, 120, 200},
                     {128, 128, 64},  {136, 264, 56}, {8, 1000, 104}, {1000, 8, 48},
                     {97, 104, 1000}, {128, 128, 0},  {256, 256, 256}};
  smem.levels = rows<NoSwizzle, Swizzle32, Swizzle64, Swizzle128>();

  auto wgmma = smem;
  wgmma.name = "wgmma_swizzle";
  wgmma.title = "the same four for wgmma, whose reads no counter sees";
  wgmma.roof = Roof::wgmma_bf16;
  wgmma.levels = rows<WgmmaTiles, Wgmma32, Wgmma64, WgmmaSwizzled>();

  auto l2 = smem;
  l2.name = "l2_order";
  l2.title = "which tile comes next: what neighbours find in L2";
  l2.roof = Roof::wgmma_bf16;
  l2.gpu_size = {8192, 8192, 8192};
  l2.check_size = {640, 768, 192};
  l2.trace_size = {512, 512, 192};
  l2.test_sizes.push_back({640, 1288, 72});  // more rows of tiles than a group has
  l2.test_sizes.push_back({1160, 264, 64});
  l2.levels = rows<TmaStore, Grouped4, Grouped8, Grouped16, Hilbert, Multicast>();

  chapter.ladders = {smem, wgmma, l2};
  chapter.exercises = {make_level<ExerciseSwizzle>(), make_level<ExerciseGroups>()};
  return chapter;
}

}  // namespace cookbook
