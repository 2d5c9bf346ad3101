// SPDX-License-Identifier: MIT
// Level 1: the same elements per block, distributed so that neighbouring lanes read neighbouring
// words.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct CoalescedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 32;  // elements
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    coalesced_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t block_begin = std::int64_t{blockIdx.x} * C::kThreads * C::kPerThread;
#pragma unroll 1
  for (int k = 0; k < C::kPerThread; ++k) {
    // [quote coalesced]
    const std::int64_t i = block_begin + k * C::kThreads + threadIdx.x;  // lane stride: 4 bytes
    // [end quote]
    if (i < n) {
      const float value = in[i];  // [load]
      out[i] = value;             // [store]
    }
  }
}

struct Coalesced : Level {
  using Config = CoalescedConfig;
  static constexpr LevelText text{
      .name = "coalesced",
      .changed = "lane l reads word l: the loop strides over the block, not over the thread",
      .expect = "4 sectors per request instead of 32: an eighth of the traffic between SM and L2",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").sectors_per_request(4), global_loads("in").coalesced(),
            global_stores("out").coalesced(), faster_than_previous(1.5)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = ceil_div(n, Config::kThreads * Config::kPerThread);
    launch(coalesced_copy<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing
