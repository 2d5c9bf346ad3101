// SPDX-License-Identifier: MIT
// Level 2: a grid of fixed size loops over the array, whatever its length.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct GridStrideConfig {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;  // 2,048 threads: a full SM
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    grid_stride_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  // [quote grid_stride]
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
#pragma unroll 1
  for (std::int64_t i = thread; i < n; i += threads) {
    const float value = in[i];  // [load]
    out[i] = value;             // [store]
  }
  // [end quote]
}

struct GridStride : Level {
  using Config = GridStrideConfig;
  static constexpr LevelText text{
      .name = "grid_stride",
      .changed = "a grid that fits on the GPU at once, looping over the array",
      .expect = "nearly the same: the sectors do not change, but the launch no longer depends on n",
      .cost = "a loop counter in 64 bits; blocks drift apart (see level 6)",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").sectors_per_request(4), global_loads("in").coalesced(),
            global_stores("out").coalesced(),
            at_least_previous(0.9, "the same sectors, but nothing keeps looping blocks in step")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks = resident_blocks(ceil_div(n, Config::kThreads), Config::kBlocksPerSm);
    launch(grid_stride_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing
