// SPDX-License-Identifier: MIT
// wgmma on operands that stay in shared memory: the rate of the tensor cores with two warpgroups.
// A swizzled row has 128 bytes of k in every element type, and an instruction multiplies 32 of
// them. So one kernel serves all types: bf16 here, the others in level_wgmma_types.cuh.
#pragma once

#include "chapters/00_roofs/problem.hpp"
#include "common/device/mbarrier.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::roofs {

struct WgmmaConfig {
  static constexpr int kThreads = 256;  // two warpgroups of 64 rows each
  static constexpr int kRowBytes = 128;
  static constexpr int kBytesA = WgmmaProblem::kM * kRowBytes;
  static constexpr int kBytesB = WgmmaProblem::kN * kRowBytes;
  static constexpr int kSmemBytes = kBytesA + kBytesB + 8;
};

/// An element type: what an accumulator's register holds, and what `out` holds.
struct Bf16 {
  using Register = float;
  using Sum = float;
};

/// One instruction: d += A B, 64 x 256 accumulators of a warpgroup, 32 bytes of k. One overload per
/// element type.
__device__ __forceinline__ void wgmma_of(Bf16, float (&d)[128], uint64_t desc_a, uint64_t desc_b) {
  wgmma_m64k16<256, bf16>(d, desc_a, desc_b, true);
}

template <class C, class T>
__global__ void __launch_bounds__(C::kThreads, 1)
    wgmma_shared(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                 typename T::Sum* __restrict__ out, int repeats) {
  unsigned char* smem = dynamic_shared<unsigned char>();
  unsigned char* tile_a = smem;               // (128 rows of 128 bytes), 128-byte swizzle
  unsigned char* tile_b = smem + C::kBytesA;  // (256 rows)
  auto* full = reinterpret_cast<uint64_t*>(smem + C::kBytesA + C::kBytesB);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, C::kBytesA + C::kBytesB);
    tma_load_2d(tile_a, &map_a, full, 0, 0);
    tma_load_2d(tile_b, &map_b, full, 0, 0);
  }
  __syncthreads();
  mbarrier_wait(full, 0);

  const int group = threadIdx.x / 128;
  typename T::Register acc[128];  // 64 x 256 per warpgroup
#pragma unroll
  for (int i = 0; i < 128; ++i) acc[i] = 0;
  const uint64_t desc_a = wgmma_descriptor<Swizzle::b128>(tile_a + group * 64 * 128, 16, 1024);
  const uint64_t desc_b = wgmma_descriptor<Swizzle::b128>(tile_b, 16, 1024);
#pragma unroll 1
  for (int r = 0; r < repeats; ++r) {
    // [quote wgmma]
    wgmma_fence_operand(acc);
    wgmma_fence();
#pragma unroll
    for (int bytes = 0; bytes < C::kRowBytes; bytes += 32) {
      wgmma_of(T{}, acc, wgmma_descriptor_advance(desc_a, bytes),
               wgmma_descriptor_advance(desc_b, bytes));
    }
    wgmma_commit();
    wgmma_wait<0>();
    // [end quote]
    wgmma_fence_operand(acc);
  }
  const int row = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  const std::int64_t first = std::int64_t{blockIdx.x} * WgmmaProblem::kM + row;
#pragma unroll
  for (int i = 0; i < 128; ++i) {
    const int col = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    out[(first + i / 2 % 2 * 8) * WgmmaProblem::kN + col] = acc[i];
  }
}

/// Everything but the level's text. P: the problem for element type T; B: its buffers.
template <class T, class P, class B>
struct WgmmaLevel : LevelOf<P, B> {
  static_assert(P::kM == WgmmaProblem::kM && P::kN == WgmmaProblem::kN);
  using Config = WgmmaConfig;
  struct Plan {
    P problem;
    B buffers;
    TensorMap map_a, map_b;
  };
  static Support supports(const P&, const DeviceInfo& device) {
    return device.cc() == 90 ? Support::yes() : Support::no("wgmma needs sm_90a");
  }
  static Plan prepare(const P& problem, const B& buffers) {
    auto map = [](const void* base, int rows) {
      TensorMapSpec spec;
      spec.dtype = TensorType::u8;  // TMA only copies
      spec.base = base;
      spec.extents = {Config::kRowBytes, static_cast<std::uint64_t>(rows)};
      spec.strides_bytes = {Config::kRowBytes};
      spec.box = {Config::kRowBytes, static_cast<std::uint32_t>(rows)};
      spec.swizzle = Swizzle::b128;
      return make_tensor_map(spec);
    };
    return {problem, buffers, map(buffers.a, P::kM), map(buffers.b, P::kN)};
  }
  static Claims claims(const P& p) { return {global_stores("out").bytes(p.bytes())}; }
  static void run(const Plan& plan, Stream stream) {
    launch(wgmma_shared<Config, T>,
           {dim3(static_cast<unsigned>(plan.problem.units)), dim3(Config::kThreads),
            Config::kSmemBytes},
           stream, plan.map_a, plan.map_b, plan.buffers.out,
           static_cast<int>(plan.problem.repeats));
  }
};

struct Wgmma : WgmmaLevel<Bf16, WgmmaProblem, ProductBuffers> {
  static constexpr LevelText text{
      .name = "wgmma",
      .changed = "m64n256k16 on shared-memory operands, two warpgroups per SM",
      .expect = "the whole tensor core: no operand passes through registers",
      .cost = "128 accumulators per thread, 48 KB of shared memory",
  };
};

}  // namespace cookbook::roofs
