// SPDX-License-Identifier: MIT
// mma.sync for other element types than bf16. A fragment's row has 32 bytes of k in every type, and
// a register holds the same four of them, so one kernel serves all types.
#pragma once

#include "chapters/00_roofs/types.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/mma.cuh"

namespace cookbook::roofs {

template <class T>
struct MmaTypeConfig {
  static constexpr int kThreads = 128;
  static constexpr int kRowTiles = MmaTypeProblem<T>::kM / 16;
  static constexpr int kColTiles = MmaTypeProblem<T>::kN / 8;
};

/// The register that holds bytes 4 `word` .. 4 `word` + 3 of the row.
__device__ __forceinline__ uint32_t register_of(const float* row, int word) {
  return to_tf32(row[word]);
}
__device__ __forceinline__ uint32_t register_of(const signed char* row, int word) {
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    bits |= static_cast<uint32_t>(static_cast<unsigned char>(row[4 * word + i])) << (8 * i);
  }
  return bits;
}

template <class T>
__device__ __forceinline__ void mma_of(typename T::Register (&d)[4], const uint32_t (&a)[4],
                                       const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, Tf32>) {
    mma_m16n8k8_tf32(d, a, b);
  } else {
    mma_m16n8k32_s8(d, a, b);
  }
}

template <class C, class T>
__global__ void __launch_bounds__(C::kThreads)
    mma_type(const typename T::Element* __restrict__ a, const typename T::Element* __restrict__ b,
             typename T::Sum* __restrict__ out, std::int64_t units, int repeats) {
  using P = MmaTypeProblem<T>;
  const int lane_idx = threadIdx.x % 32;
  const int quad = lane_idx / 4;  // row of the fragments, modulo 8
  const int word = lane_idx % 4;  // of the row, in registers
  const std::int64_t warp = (std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x) / 32;
  if (warp >= units) return;

  uint32_t a_frag[C::kRowTiles][4];
  uint32_t b_frag[C::kColTiles][2];
  typename T::Register acc[C::kRowTiles][C::kColTiles][4] = {};
#pragma unroll
  for (int i = 0; i < C::kRowTiles; ++i) {
    const typename T::Element* row = a + (16 * i + quad) * P::kK;
    a_frag[i][0] = register_of(row, word);
    a_frag[i][1] = register_of(row + 8 * P::kK, word);
    a_frag[i][2] = register_of(row, word + 4);
    a_frag[i][3] = register_of(row + 8 * P::kK, word + 4);
  }
#pragma unroll
  for (int j = 0; j < C::kColTiles; ++j) {
    const typename T::Element* row = b + (8 * j + quad) * P::kK;
    b_frag[j][0] = register_of(row, word);
    b_frag[j][1] = register_of(row, word + 4);
  }
#pragma unroll 4
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int i = 0; i < C::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < C::kColTiles; ++j) mma_of<T>(acc[i][j], a_frag[i], b_frag[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < C::kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < C::kColTiles; ++j) {
      typename T::Sum* at = out + (warp * P::kM + 16 * i + quad) * P::kN + 8 * j + 2 * word;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        at[e / 2 * 8 * P::kN + e % 2] = static_cast<typename T::Sum>(acc[i][j][e]);
      }
    }
  }
}

template <class T>
struct MmaType : LevelOf<MmaTypeProblem<T>, TypeBuffers<T>> {
  using Base = LevelOf<MmaTypeProblem<T>, TypeBuffers<T>>;
  using Config = MmaTypeConfig<T>;
  static constexpr LevelText text{
      .name = "mma_types",
      .changed = "mma.sync on fragments that never leave registers",
      .expect = "tf32: half of bf16, whose elements have half as many bytes; int8: twice bf16",
      .cost = "88 registers of fragments and accumulators",
  };
  static Support supports(const MmaTypeProblem<T>&, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("mma.sync of this type needs sm_80");
    if (std::is_same_v<T, Int8> && !kTensorTypes) {
      return Support::no("the SIMT backend has no int8 mma.sync");
    }
    return Support::yes();
  }
  static Claims claims(const MmaTypeProblem<T>& p) {
    return {global_stores("out").bytes(p.bytes())};
  }
  static void run(const typename Base::Plan& plan, Stream stream) {
    const std::int64_t warps = Config::kThreads / 32;
    launch(
        mma_type<Config, T>,
        {dim3(static_cast<unsigned>(ceil_div(plan.problem.units, warps))), dim3(Config::kThreads)},
        stream, plan.buffers.a, plan.buffers.b, plan.buffers.out, plan.problem.units,
        static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
