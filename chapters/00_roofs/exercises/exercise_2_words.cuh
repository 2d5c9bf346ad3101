// SPDX-License-Identifier: MIT
// Exercise 0.2: shared memory delivers 128 bytes per clock also to 32 lanes with 4 bytes each, if
// the 32 words are in different banks (word w is in bank w % 32). This kernel is right and reads
// its four floats one by one, but gets only a quarter of that, because lanes 8 apart access the
// same bank. All four floats are added, in any order: fill in `element` so that every load is one
// wavefront. Neither the position of a float nor the width of the loads may change.
#pragma once

#include "chapters/00_roofs/problem.hpp"

namespace cookbook::roofs {

struct WordsConfig {
  static constexpr int kThreads = 256;
};

/// Which of its four floats lane `lane_idx` reads in step i = 0 ... 3: your part.
template <class C>
__device__ __forceinline__ int element(int /*lane_idx*/, int i) {
  return i;
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
    if (r % 8 == 7) __syncwarp();  // keeps the compiler from reusing loaded values
  }
  out[blockIdx.x * C::kThreads + t] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

struct Words : LevelOf<SharedProblem, SharedBuffers> {
  using Config = WordsConfig;
  static constexpr LevelText text{
      .name = "words",
      .changed = "4-byte loads, in an order of your own",
      .expect = "128 bytes per wavefront: four times as many loads, no more",
      .cost = "4 KB of shared memory, four load instructions instead of one",
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
