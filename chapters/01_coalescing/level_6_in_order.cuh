// SPDX-License-Identifier: MIT
// Level 6: no loop. Blocks start in order, so the bytes in flight are one window of memory.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct InOrderConfig {
  static constexpr int kThreads = 256;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    in_order_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n,
                  Split split) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
  // [quote in_order]
  // When a block ends, the next one in order replaces it. Looping blocks drift apart instead; in
  // the end their requests keep as many DRAM pages open as there are blocks.
  if (thread < split.vectors) {
    const float4 value = in4[thread];  // [load]
    out4[thread] = value;              // [store]
  }
  // [end quote]
  // The elements before the first 16-byte boundary and those after the last.
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

struct InOrder : Level {
  using Config = InOrderConfig;
  static constexpr LevelText text{
      .name = "in_order",
      .changed = "one vector per thread and no loop: blocks run in order",
      .expect =
          "as much in flight, from one sliding window: fewer DRAM pages opened, up to cudaMemcpy",
      .cost = "one block start per 4 KB",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").on("load").sectors_per_request(16),
            global_loads("in").on("load").coalesced(),
            global_stores("out").coalesced(),
            global_loads("in").on("load").requests(static_cast<double>(p.n / 128)),
            faster_than_previous(1.02),
            against_library("cudaMemcpy", 0.98)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const Split split = split_for_vectors(plan.buffers, n);
    // Where no cut into vectors fits both arrays, the loop at the end copies everything.
    const std::int64_t work = split.vectors > 0 ? split.vectors : ceil_div(n, 4);
    launch(in_order_copy<Config>,
           {dim3(static_cast<unsigned>(ceil_div(work, Config::kThreads))), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, n, split);
  }
};

}  // namespace cookbook::coalescing
