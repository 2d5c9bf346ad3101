// SPDX-License-Identifier: MIT
/// @file
/// Shared by the levels with tensor cores; not the subject of any of them: tiles of A and B in
/// shared memory, which problems TMA supports, and what a launch needs.
#pragma once

#include <cstdint>
#include <string>

#include "chapters/12_fp8/level_0_dequantised.cuh"
#include "common/backend/tensor_map.hpp"
#include "common/device/mbarrier.cuh"
#include "common/device/pair.cuh"
#include "common/device/raster_order.cuh"
#include "common/device/stage_cursor.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::fp8 {

/// Bytes of a row of a tile: 128 k, one block of scales and one span of the 128-byte swizzle. So a
/// tile is a single box of TMA, and a wgmma's 32 k are 32 bytes further on.
inline constexpr int kRowBytes = 128;

/// One stage: the tiles of A and B for 128 k.
template <class C>
struct Stage {
  unsigned char a[C::kBlockM * kRowBytes];
  unsigned char b[C::kBlockN * kRowBytes];
};

/// Where wgmma finds `tile`, which has the 128-byte swizzle.
__device__ __forceinline__ uint64_t descriptor_of(const unsigned char* tile) {
  return wgmma_descriptor<Swizzle::b128>(tile, 0, 8 * kRowBytes);
}

/// Tensor map of rows x cols e4m3 elements, loaded in boxes of box_rows x 128.
inline TensorMap operand_map(const fp8_e4m3* base, std::int64_t rows, std::int64_t cols,
                             std::int64_t pitch, int box_rows) {
  TensorMapSpec spec;
  spec.dtype = TensorType::u8;
  spec.base = base;
  spec.extents = {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)};
  spec.strides_bytes = {static_cast<std::uint64_t>(pitch)};
  spec.box = {kRowBytes, static_cast<std::uint32_t>(box_rows)};
  spec.swizzle = Swizzle::b128;
  spec.l2_promotion = L2Promotion::b256;
  return make_tensor_map(spec);
}

/// Tensor map of the scales of A, loaded in boxes of `box_cols` rows of A for one block of k.
inline TensorMap scale_map(const Problem& p, const float* base, int box_cols) {
  TensorMapSpec spec;
  spec.dtype = TensorType::f32;
  spec.base = base;
  spec.extents = {static_cast<std::uint64_t>(p.m), static_cast<std::uint64_t>(p.k_blocks())};
  spec.strides_bytes = {static_cast<std::uint64_t>(p.ld_scale_a) * sizeof(float)};
  spec.box = {static_cast<std::uint32_t>(box_cols), 1};
  return make_tensor_map(spec);
}

inline Support tma_support(const char* name, std::int64_t pitch, std::int64_t step) {
  if (pitch % step == 0) return Support::yes();
  return Support::no("TMA steps in 16 bytes: " + std::string(name) + " = " + std::to_string(pitch) +
                     " is no multiple of " + std::to_string(step));
}

/// Supported if TMA can load A and B and the device has wgmma.
inline Support supports_wgmma(const Problem& p, const DeviceInfo& device) {
  if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
  if (Support s = tma_support("lda", p.lda, 16); !s) return s;
  return tma_support("ldb", p.ldb, 16);
}

/// Where a kernel finds what TMA does not load.
struct Scales {
  const float *a, *b;
  std::int64_t lda, ldb;  // elements
};

/// Where a kernel that does not store by TMA writes C.
struct Output {
  bf16* c;
  std::int64_t ldc;  // elements
};

/// What a level prepares: its tensor maps, unless TMA is unsupported for the problem.
struct TmaPlan {
  Problem problem;
  Buffers buffers;
  bool fallback = false;  // K = 0 or a misaligned base: level 0 computes C
  TensorMap a{}, b{}, scale_a{}, c{};

  Scales scales() const {
    return {buffers.scale_a, buffers.scale_b, problem.ld_scale_a, problem.ld_scale_b};
  }
  Output output() const { return {buffers.c, problem.ldc}; }
};

inline bool is_16_byte_aligned(const void* base) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0;
}

/// True if no work is left: C is empty, or level 0's kernel was launched instead.
inline bool launched_fallback(const TmaPlan& plan, Stream stream) {
  if (plan.problem.m == 0 || plan.problem.n == 0) return true;
  if (plan.fallback) dequantised::launch_kernel(plan.problem, plan.buffers, stream);
  return plan.fallback;
}

/// Initialises the barriers of all stages; a barrier of the block must follow. `full` completes
/// when the producer's loads have arrived, `empty` when `readers` warps have read the stage.
template <int kStages, class Smem>
__device__ __forceinline__ void init_barriers(Smem& smem, int readers) {
  for (int s = 0; s < kStages; ++s) {
    mbarrier_init(&smem.full[s], 1);
    mbarrier_init(&smem.empty[s], static_cast<uint32_t>(readers));
  }
  fence_mbarrier_init();
}

/// Writes a warpgroup's 64 x kN sums (layout: wgmma.cuh) with their top left at (row, col) directly
/// from registers.
template <int kCount>
__device__ __forceinline__ void store_sums(const float (&sum)[kCount], const Output& out,
                                           const Extents& e, int row, int col) {
  row += warp_idx() % 4 * 16 + lane_idx() / 4;
  col += lane_idx() % 4 * 2;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const int r = row + i % 2 * 8, c = col + i / 2 * 8;
    if (r >= e.m || c >= e.n) continue;
    bf16* destination = out.c + r * out.ldc + c;
    if (reinterpret_cast<std::uintptr_t>(destination) % 4 == 0 && c + 1 < e.n) {
      store_vector(destination, to_pair<bf16>(sum[2 * i], sum[2 * i + 1]));
    } else {
      destination[0] = __float2bfloat16_rn(sum[2 * i]);
      if (c + 1 < e.n) destination[1] = __float2bfloat16_rn(sum[2 * i + 1]);
    }
  }
}

}  // namespace cookbook::fp8
