// SPDX-License-Identifier: MIT
// Level 0: each thread copies a run of consecutive elements, as a CPU thread would.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct StridedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 32;  // elements: 128 bytes, one line
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    strided_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t block_begin = std::int64_t{blockIdx.x} * C::kThreads * C::kPerThread;
  // Not unrolled, here and in the next two levels: each thread has one load in flight at a time.
#pragma unroll 1
  for (int k = 0; k < C::kPerThread; ++k) {
    // [quote strided]
    const std::int64_t i = block_begin + threadIdx.x * C::kPerThread + k;  // lane stride: 128 bytes
    if (i < n) {
      const float value = in[i];  // [load]
      out[i] = value;             // [store]
    }
    // [end quote]
  }
}

struct Strided : Level {
  using Config = StridedConfig;
  static constexpr LevelText text{
      .name = "strided",
      .changed = "start: every thread copies 32 consecutive elements",
      .expect =
          "a warp touches 32 sectors for 128 bytes, 8 times what it needs: far below the roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").sectors_per_request(32), global_loads("in").sectors_over_ideal(8),
            global_stores("out").sectors_per_request(32)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = ceil_div(n, Config::kThreads * Config::kPerThread);
    launch(strided_copy<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing
