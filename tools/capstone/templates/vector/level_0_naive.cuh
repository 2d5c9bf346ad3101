// SPDX-License-Identifier: MIT
// Level 0: each thread takes a run of consecutive elements, as a CPU thread would.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct NaiveConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 8;  // elements
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < C::kPerThread; ++k) {
    const std::int64_t i = thread * C::kPerThread + k;  // stride between lanes: 32 bytes
    if (i < n) {
      const float x = in[i];  // [load]
      out[i] = 2 * x + 1;     // [store]
    }
  }
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: every thread takes 8 consecutive elements",
      .expect =
          "a warp touches 32 sectors for 128 bytes, 8 times what it needs: far below the "
          "roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").sectors_per_request(32), global_stores("out").sectors_over_ideal(8)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = ceil_div(n, Config::kThreads * Config::kPerThread);
    launch(naive<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::mine
