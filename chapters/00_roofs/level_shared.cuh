// SPDX-License-Identifier: MIT
// Reads shared memory without bank conflicts, 16 bytes per lane: 128 bytes per clock on every SM.
#pragma once

#include "chapters/00_roofs/problem.hpp"

namespace cookbook::roofs {

struct SharedConfig {
  static constexpr int kThreads = 256;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    read_shared(const float* __restrict__ in, float* __restrict__ out, int repeats) {
  __shared__ float4 ring[C::kThreads];
  const int t = threadIdx.x;
  ring[t] = make_float4(in[4 * t], in[4 * t + 1], in[4 * t + 2], in[4 * t + 3]);
  __syncthreads();
  float4 sum = make_float4(0, 0, 0, 0);
  // [quote shared]
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
    // A moving window: each step reads what another warp wrote, and two steps in a row never read
    // the same.
    const float4 value = ring[(t + 32 * r) % C::kThreads];  // [load]
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
    if (r % 8 == 7) __syncwarp();  // keeps the compiler from reusing the eight values
  }
  // [end quote]
  out[blockIdx.x * C::kThreads + t] = (sum.x + sum.y) + (sum.z + sum.w);
}

struct SharedRead : LevelOf<SharedProblem, SharedBuffers> {
  using Config = SharedConfig;
  static constexpr LevelText text{
      .name = "shared",
      .changed = "conflict-free 16-byte loads from shared memory",
      .expect = "128 bytes per clock and SM",
      .cost = "4 KB of shared memory",
  };
  static Claims claims(const Problem&) {
    return {shared_loads().on("load").conflict_free(),
            shared_loads().on("load").wavefronts_per_request(4)};
  }
  static void run(const Plan& plan, Stream stream) {
    launch(read_shared<Config>,
           {dim3(static_cast<unsigned>(plan.problem.blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
