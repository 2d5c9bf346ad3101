// SPDX-License-Identifier: MIT
// Level 1: the same elements per block, distributed so that neighbouring lanes take neighbouring
// elements.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct CoalescedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 8;  // elements
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    coalesced(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kThreads * C::kPerThread;
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) {
    const std::int64_t i = begin + k * C::kThreads + threadIdx.x;  // stride between lanes: 4 bytes
    if (i < n) {
      const float x = in[i];  // [load]
      out[i] = 2 * x + 1;     // [store]
    }
  }
}

struct Coalesced : Level {
  using Config = CoalescedConfig;
  static constexpr LevelText text{
      .name = "coalesced",
      .changed = "lane l takes element l: the loop strides over the block, not over the thread",
      .expect = "4 sectors per request instead of 32: an eighth of the traffic between SM and L2",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").on("load").sectors_per_request(4), global_loads("in").coalesced(),
            global_stores("out").coalesced(), faster_than_previous(1.5)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = ceil_div(n, Config::kThreads * Config::kPerThread);
    launch(coalesced<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::mine
