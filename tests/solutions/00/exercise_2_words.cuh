// SPDX-License-Identifier: MIT
// Solution 0.2: the vectors of lanes l, l + 8, l + 16 and l + 24 begin in one bank, so these four
// must begin with different elements: lane l with l / 8. In turn i, lane l then asks bank 4 (l % 8)
// + (i + l / 8) % 4, and no two lanes the same.
#pragma once

#include "chapters/00_roofs/problem.hpp"

namespace cookbook::roofs {

struct WordsConfig {
  static constexpr int kThreads = 256;
};

/// Which of its four floats lane `lane_idx` reads in turn i = 0 ... 3.
template <class C>
__device__ __forceinline__ int element(int lane_idx, int i) {
  return (i + lane_idx / 8) % 4;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    read_words(const float* __restrict__ in, float* __restrict__ out, int repeats) {
  __shared__ float ring[4 * C::kThreads];  // (vector, element)
  const int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) ring[i * C::kThreads + t] = in[i * C::kThreads + t];
  __syncthreads();
  float sum[4] = {};
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
    const int vector = (t + 32 * r) % C::kThreads;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += ring[4 * vector + element<C>(t % 32, i)];
    if (r % 8 == 7) __syncwarp();  // keeps the compiler from remembering what it has loaded
  }
  out[blockIdx.x * C::kThreads + t] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

struct Words : LevelOf<SharedProblem, SharedBuffers> {
  using Config = WordsConfig;
  static constexpr LevelText text{
      .name = "words",
      .changed = "4-byte loads, every eight lanes one element on",
      .expect = "128 bytes a wavefront: four times as many loads, no more",
      .cost = "4 KB of shared memory, four load instructions for one",
      .ladder = "shared",
  };

  static Claims claims(const Problem& p) {
    return {shared_loads().wavefronts_per_request(1), shared_loads().requests(p.bytes() / 128),
            shared_loads().bytes(p.bytes()), shared_stores().conflict_free(),
            global_loads("in").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    launch(read_words<Config>,
           {dim3(static_cast<unsigned>(plan.problem.blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
