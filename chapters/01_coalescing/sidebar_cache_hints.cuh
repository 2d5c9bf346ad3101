// SPDX-License-Identifier: MIT
// Sidebar: the same float4 copy with each cache operator that CUDA C++ offers.
#pragma once

#include "chapters/01_coalescing/problem.hpp"
#include "common/device/vector.cuh"

namespace cookbook::coalescing {

struct PlainAccess {
  static constexpr const char* name = "plain";
  static __device__ __forceinline__ float4 load(const float4* at) { return *at; }
  static __device__ __forceinline__ void store(float4* at, float4 value) { *at = value; }
};
struct ReadOnlyAccess {  // ld.global.nc: no thread writes `in` while the kernel runs
  static constexpr const char* name = "ldg";
  static __device__ __forceinline__ float4 load(const float4* at) { return __ldg(at); }
  static __device__ __forceinline__ void store(float4* at, float4 value) { *at = value; }
};
struct L2OnlyAccess {  // .cg: cached in L2, not in L1
  static constexpr const char* name = "ldcg_stcg";
  static __device__ __forceinline__ float4 load(const float4* at) { return __ldcg(at); }
  static __device__ __forceinline__ void store(float4* at, float4 value) { __stcg(at, value); }
};
struct EvictFirstAccess {  // .cs: likely accessed once, evicted first
  static constexpr const char* name = "ldcs_stcs";
  static __device__ __forceinline__ float4 load(const float4* at) { return __ldcs(at); }
  static __device__ __forceinline__ void store(float4* at, float4 value) { __stcs(at, value); }
};
struct NoAllocateAccess {  // ld.global.nc.L1::no_allocate and st.cs: level 5's choice
  static constexpr const char* name = "no_allocate_stcs";
  static __device__ __forceinline__ float4 load(const float4* at) {
    return load_vector_streaming<float4>(at);
  }
  static __device__ __forceinline__ void store(float4* at, float4 value) {
    store_vector_streaming(at, value);
  }
};

template <class AccessValue>
struct HintConfig {
  using Access = AccessValue;
  static constexpr int kThreads = 256;
  static constexpr int kLoads = 4;
};

// No __restrict__: with it the compiler would turn the plain load into the read-only one.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    hinted_copy(const float* in, float* out, std::int64_t n, Split split) {
  using Access = typename C::Access;
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kThreads * C::kLoads + threadIdx.x;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
  float4 value[C::kLoads] = {};
#pragma unroll
  for (int k = 0; k < C::kLoads; ++k) {
    const std::int64_t i = begin + k * C::kThreads;
    if (i < split.vectors) value[k] = Access::load(in4 + i);
  }
#pragma unroll
  for (int k = 0; k < C::kLoads; ++k) {
    const std::int64_t i = begin + k * C::kThreads;
    if (i < split.vectors) Access::store(out4 + i, value[k]);
  }
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

template <class Access>
struct Hint : Level {
  using Config = HintConfig<Access>;
  static constexpr LevelText text{
      .name = Access::name,
      .changed = "cache operator only",
      .expect = "the same: a copy reuses nothing that a cache could keep",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = ceil_div(n, 4 * Config::kThreads * Config::kLoads);
    launch(hinted_copy<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
