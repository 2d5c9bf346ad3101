// SPDX-License-Identifier: MIT
// Wrong: pairs wherever the arrays begin. Right on a CPU; a GPU refuses a float2 off its boundary.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing::wrong {

struct PairsConfig {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    pairs_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  const std::int64_t done = n / 2 * 2;  // elements [0, done) are copied in pairs
  const float2* in2 = reinterpret_cast<const float2*>(in);
  float2* out2 = reinterpret_cast<float2*>(out);
  for (std::int64_t i = thread; i < n / 2; i += threads) out2[i] = in2[i];
  for (std::int64_t i = done + thread; i < n; i += threads) out[i] = in[i];
}

struct Pairs : Level {
  using Config = PairsConfig;
  static constexpr LevelText text{
      .name = "pairs",
      .changed = "float2: 8 bytes per load and store",
      .expect = "half the requests of the scalar copy",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").requests(static_cast<double>(p.n) / 64 + 32, Relation::at_most),
            global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks = resident_blocks(ceil_div(n, Config::kThreads), Config::kBlocksPerSm);
    launch(pairs_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing::wrong
