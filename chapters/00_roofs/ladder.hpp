// SPDX-License-Identifier: MIT
// Chapter 0: one ladder per roof. Each has a single level: there is nothing to optimise, only to
// measure.
#pragma once

#include "chapters/01_coalescing/level_6_in_order.cuh"
#include "generated/chapter_0_levels.hpp"

namespace cookbook {

/// A ladder with one level over problem P, compared with `roof`.
template <class P, class L>
Ladder roof_ladder(std::string name, std::string title, std::vector<std::string> dims, Roof roof,
                   Size gpu_size, Size small_size) {
  auto ladder = ladder_over<P>(std::move(name), std::move(title), std::move(dims));
  ladder.roof = roof;
  ladder.gpu_size = std::move(gpu_size);
  ladder.check_size = ladder.trace_size = small_size;
  ladder.test_sizes = {small_size};
  for (std::int64_t odd : {1, 3, 7}) {
    Size size = small_size;
    size[0] = odd;
    ladder.test_sizes.push_back(size);
  }
  ladder.levels = rows<L>();
  return ladder;
}

inline Chapter chapter_0() {
  using namespace roofs;
  Chapter chapter;
  auto copy = roof_ladder<coalescing::Problem, coalescing::InOrder>(
      "hbm_copy", "HBM, read and written (chapter 1's last level)", {"n"}, Roof::hbm_copy,
      {268435456}, {1 << 16});
  auto read = roof_ladder<ReadProblem, Read>("hbm_read", "HBM, read only", {"rows", "repeats"},
                                             Roof::hbm_read, {131072, 1}, {64, 1});
  auto l2 = roof_ladder<ReadProblem, Read>("l2", "L2, 16 MiB read again and again",
                                           {"rows", "repeats"}, Roof::l2, {4096, 64}, {16, 3});
  auto shared = roof_ladder<SharedProblem, SharedRead>("shared", "shared memory, without conflicts",
                                                       {"blocks", "repeats"}, Roof::shared,
                                                       {1056, 16384}, {8, 16});
  auto fma = roof_ladder<FmaProblem, Fma>("fp32", "FP32 fused multiply-adds", {"blocks", "repeats"},
                                          Roof::fp32, {1056, 8192}, {8, 32});
  auto mma =
      roof_ladder<MmaProblem, Mma>("mma_bf16", "tensor cores through mma.sync, bf16",
                                   {"warps", "repeats"}, Roof::mma_bf16, {2112, 8192}, {8, 4});
  auto wgmma = roof_ladder<WgmmaProblem, Wgmma>("wgmma_bf16", "tensor cores through wgmma, bf16",
                                                {"blocks", "repeats"}, Roof::wgmma_bf16,
                                                {132, 2048}, {4, 3});
  fma.dtype = "f32";
  mma.dtype = wgmma.dtype = "bf16";
  auto fma64 = roof_ladder<Fma64Problem, Fma64>(
      "fp64", "FP64 fused multiply-adds", {"blocks", "repeats"}, Roof::fp64, {1056, 8192}, {8, 32});
  auto mma_tf32 = roof_ladder<MmaTypeProblem<Tf32>, MmaType<Tf32>>(
      "mma_tf32", "tensor cores through mma.sync, tf32", {"warps", "repeats"}, Roof::mma_tf32,
      {2112, 8192}, {8, 4});
  auto mma_int8 = roof_ladder<MmaTypeProblem<Int8>, MmaType<Int8>>(
      "mma_int8", "tensor cores through mma.sync, int8", {"warps", "repeats"}, Roof::mma_int8,
      {2112, 8192}, {8, 4});
  auto wgmma_tf32 = roof_ladder<WgmmaTypeProblem<Tf32>, WgmmaType<Tf32>>(
      "wgmma_tf32", "tensor cores through wgmma, tf32", {"blocks", "repeats"}, Roof::wgmma_tf32,
      {132, 2048}, {4, 3});
  auto wgmma_fp8 = roof_ladder<WgmmaTypeProblem<E4m3>, WgmmaType<E4m3>>(
      "wgmma_fp8", "tensor cores through wgmma, e4m3", {"blocks", "repeats"}, Roof::wgmma_fp8,
      {132, 2048}, {4, 3});
  auto wgmma_int8 = roof_ladder<WgmmaTypeProblem<Int8>, WgmmaType<Int8>>(
      "wgmma_int8", "tensor cores through wgmma, int8", {"blocks", "repeats"}, Roof::wgmma_int8,
      {132, 2048}, {4, 3});
  fma64.dtype = "f64";
  mma_tf32.dtype = wgmma_tf32.dtype = "f32";  // in memory
  mma_int8.dtype = wgmma_int8.dtype = "i8";
  wgmma_fp8.dtype = "e4m3";
  chapter.ladders = {copy,  read,     l2,       shared,     fma,       mma,       wgmma,
                     fma64, mma_tf32, mma_int8, wgmma_tf32, wgmma_fp8, wgmma_int8};
  chapter.exercises = {make_level<Passes>(), make_level<Words>()};
  return chapter;
}

}  // namespace cookbook
