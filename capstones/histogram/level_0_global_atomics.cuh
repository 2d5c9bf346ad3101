// SPDX-License-Identifier: MIT
// Level 0: one atomic addition in device memory per key.
#pragma once

#include "problem.hpp"

namespace cookbook::histogram {

struct GlobalAtomicsConfig {
  static constexpr int kThreads = 256;  // keys per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    global_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts, unsigned bins,
                     std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i >= n) return;
  const std::uint32_t key = keys[i];
  if (key < bins) atomicAdd(&counts[key], 1u);
}

struct GlobalAtomics : Level {
  using Config = GlobalAtomicsConfig;
  static constexpr LevelText text{
      .name = "global_atomics",
      .changed = "start: one atomic addition in device memory per key",
      .expect =
          "a few percent of the roof: 256 counters are 32 sectors of L2, and L2 adds to a sector "
          "once in a few cycles; all keys equal: one sector, at least 10 times slower still",
      .cost = "n atomics in L2",
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("keys").bytes(4 * n), global_loads("keys").coalesced(),
            global_atomics("counts").requests(n / kWarpSize)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(global_histogram<Config>,
           {dim3(blocks_for(problem.n, Config::kThreads)), dim3(Config::kThreads)}, stream,
           buffers.keys, buffers.counts, problem.bins, problem.n);
  }
};

}  // namespace cookbook::histogram
