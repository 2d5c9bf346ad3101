// SPDX-License-Identifier: MIT
// Chapter 0: one ladder per roof. Each has a single level: there is nothing to optimise, only to
// measure.
#pragma once

#include "chapters/01_coalescing/level_6_in_order.cuh"
#include "generated/chapter_0_levels.hpp"

namespace cookbook {

/// A ladder with level L alone, compared with `roof`.
template <class L>
Ladder roof_ladder(std::string name, std::string title, std::vector<std::string> dims, Roof roof,
                   DType dtype, Size gpu_size, Size small_size) {
  auto ladder =
      ladder_over<typename L::Problem>(std::move(name), std::move(title), std::move(dims));
  ladder.roof = roof;
  ladder.dtype = dtype_name(dtype);
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

/// Those of tensor cores. `type`: of the operands in memory.
template <class L>
Ladder mma_ladder(std::string name, std::string type, Roof roof, DType dtype) {
  return roof_ladder<L>(std::move(name), "tensor cores through mma.sync, " + type,
                        {"warps", "repeats"}, roof, dtype, {2112, 8192}, {8, 4});
}
template <class L>
Ladder wgmma_ladder(std::string name, std::string type, Roof roof, DType dtype) {
  return roof_ladder<L>(std::move(name), "tensor cores through wgmma, " + type,
                        {"blocks", "repeats"}, roof, dtype, {132, 2048}, {4, 3});
}

inline Chapter chapter_0() {
  using namespace roofs;
  constexpr DType f32 = DType::f32;
  Chapter chapter;
  chapter.ladders = {
      roof_ladder<coalescing::InOrder>("hbm_copy", "HBM, read and written (chapter 1's last level)",
                                       {"n"}, Roof::hbm_copy, f32, {268435456}, {1 << 16}),
      roof_ladder<Read>("hbm_read", "HBM, read only", {"rows", "repeats"}, Roof::hbm_read, f32,
                        {131072, 1}, {64, 1}),
      roof_ladder<Read>("l2", "L2, 16 MiB read again and again", {"rows", "repeats"}, Roof::l2, f32,
                        {4096, 64}, {16, 3}),
      roof_ladder<SharedRead>("shared", "shared memory, without conflicts", {"blocks", "repeats"},
                              Roof::shared, f32, {1056, 16384}, {8, 16}),
      roof_ladder<Fma>("fp32", "FP32 fused multiply-adds", {"blocks", "repeats"}, Roof::fp32, f32,
                       {1056, 8192}, {8, 32}),
      mma_ladder<Mma>("mma_bf16", "bf16", Roof::mma_bf16, DType::bf16),
      wgmma_ladder<Wgmma>("wgmma_bf16", "bf16", Roof::wgmma_bf16, DType::bf16),
      roof_ladder<Fma64>("fp64", "FP64 fused multiply-adds", {"blocks", "repeats"}, Roof::fp64,
                         DType::f64, {1056, 8192}, {8, 32}),
      mma_ladder<MmaType<Tf32>>("mma_tf32", "tf32", Roof::mma_tf32, f32),
      mma_ladder<MmaType<Int8>>("mma_int8", "int8", Roof::mma_int8, DType::i8),
      wgmma_ladder<WgmmaType<Tf32>>("wgmma_tf32", "tf32", Roof::wgmma_tf32, f32),
      wgmma_ladder<WgmmaType<E4m3>>("wgmma_fp8", "e4m3", Roof::wgmma_fp8, DType::e4m3),
      wgmma_ladder<WgmmaType<Int8>>("wgmma_int8", "int8", Roof::wgmma_int8, DType::i8)};
  chapter.exercises = {make_level<Passes>(), make_level<Words>()};
  return chapter;
}

}  // namespace cookbook
