// SPDX-License-Identifier: MIT
// Exercise 1.2: this copy is right for powers of two in aligned arrays, and leaves elements
// unwritten for many other sizes or addresses. Find and repair the planted bug: which elements does
// no thread write, and why?
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct TailConfig {
  static constexpr int kThreads = 256;
  static constexpr int kLoads = 4;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tail_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n, Split split) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kThreads * C::kLoads + threadIdx.x;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
#pragma unroll
  for (int k = 0; k < C::kLoads; ++k) {
    const std::int64_t i = begin + k * C::kThreads;
    if (i < split.vectors) out4[i] = in4[i];
  }
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

struct Tail : Level {
  using Config = TailConfig;
  static constexpr LevelText text{
      .name = "tail",
      .changed = "one block per batch of 16-byte accesses; has a bug",
      .expect = "every element written, wherever the array begins and ends",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks =
        std::max<std::int64_t>(n / (4 * Config::kThreads * Config::kLoads), 1);
    launch(tail_copy<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
