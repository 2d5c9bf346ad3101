// SPDX-License-Identifier: MIT
// wgmma for other element types than bf16. A swizzled row has 128 bytes of k in every type, and an
// instruction takes 32 of them, so one kernel serves all types.
#pragma once

#include "chapters/00_roofs/types.hpp"
#include "common/device/mbarrier.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::roofs {

template <class T>
struct WgmmaTypeConfig {
  static constexpr int kThreads = 256;  // two warpgroups of 64 rows each
  static constexpr int kBytesA = WgmmaTypeProblem<T>::kM * 128;
  static constexpr int kBytesB = WgmmaTypeProblem<T>::kN * 128;
  static constexpr int kSmemBytes = kBytesA + kBytesB + 8;
};

template <class T>
__device__ __forceinline__ void wgmma_of(typename T::Register (&d)[128], uint64_t desc_a,
                                         uint64_t desc_b) {
  if constexpr (std::is_same_v<T, Tf32>) {
    wgmma_m64n256k8_tf32(d, desc_a, desc_b);
  } else if constexpr (std::is_same_v<T, E4m3>) {
    wgmma_m64k32_e4m3<256>(d, desc_a, desc_b, true);
  } else {
    wgmma_m64n256k32_s8(d, desc_a, desc_b);
  }
}

template <class C, class T>
__global__ void __launch_bounds__(C::kThreads, 1)
    wgmma_type(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
               typename T::Sum* __restrict__ out, int repeats) {
  using P = WgmmaTypeProblem<T>;
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
    wgmma_fence_operand(acc);
    wgmma_fence();
#pragma unroll
    for (int bytes = 0; bytes < 128; bytes += 32) {
      wgmma_of<T>(acc, wgmma_descriptor_advance(desc_a, bytes),
                  wgmma_descriptor_advance(desc_b, bytes));
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_operand(acc);
  }
  const int row = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  const std::int64_t first = std::int64_t{blockIdx.x} * P::kM + row;
#pragma unroll
  for (int i = 0; i < 128; ++i) {
    const int col = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    out[(first + i / 2 % 2 * 8) * P::kN + col] = static_cast<typename T::Sum>(acc[i]);
  }
}

template <class T>
struct WgmmaType : LevelOf<WgmmaTypeProblem<T>, TypeBuffers<T>> {
  using Config = WgmmaTypeConfig<T>;
  static constexpr LevelText text{
      .name = "wgmma_types",
      .changed = "wgmma of 64 x 256 on shared-memory operands, two warpgroups per SM",
      .expect = "tf32: half of bf16; e4m3 and int8: twice bf16",
      .cost = "128 accumulators per thread, 48 KB of shared memory",
  };
  struct Plan {
    WgmmaTypeProblem<T> problem;
    TypeBuffers<T> buffers;
    TensorMap map_a, map_b;
  };
  static Support supports(const WgmmaTypeProblem<T>&, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("wgmma needs sm_90a");
    if (!std::is_same_v<T, E4m3> && !kTensorTypes) {
      return Support::no("the SIMT backend has no wgmma of this type");
    }
    return Support::yes();
  }
  static Plan prepare(const WgmmaTypeProblem<T>& problem, const TypeBuffers<T>& buffers) {
    auto map = [](const void* base, int rows) {
      TensorMapSpec spec;
      spec.dtype = TensorType::u8;  // TMA only copies
      spec.base = base;
      spec.extents = {128, static_cast<std::uint64_t>(rows)};
      spec.strides_bytes = {128};
      spec.box = {128, static_cast<std::uint32_t>(rows)};
      spec.swizzle = Swizzle::b128;
      return make_tensor_map(spec);
    };
    return {problem, buffers, map(buffers.a, WgmmaTypeProblem<T>::kM),
            map(buffers.b, WgmmaTypeProblem<T>::kN)};
  }
  static Claims claims(const WgmmaTypeProblem<T>& p) {
    return {global_stores("out").bytes(p.bytes())};
  }
  static void run(const Plan& plan, Stream stream) {
    launch(wgmma_type<Config, T>,
           {dim3(static_cast<unsigned>(plan.problem.units)), dim3(Config::kThreads),
            Config::kSmemBytes},
           stream, plan.map_a, plan.map_b, plan.buffers.out,
           static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
