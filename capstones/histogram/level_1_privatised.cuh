// SPDX-License-Identifier: MIT
// Level 1: a histogram per block in shared memory, added to the counts at the end of the block.
#pragma once

#include "problem.hpp"

namespace cookbook::histogram {

struct PrivatisedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 16;                // keys
  static constexpr int kTile = kThreads * kPerThread;  // keys per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    privatised_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts,
                         unsigned bins, std::int64_t n) {
  __shared__ std::uint32_t own[kMaxBins];
  for (unsigned b = threadIdx.x; b < bins; b += C::kThreads) own[b] = 0;
  __syncthreads();
  const std::int64_t first = std::int64_t{blockIdx.x} * C::kTile + threadIdx.x;
  const std::int64_t end = min(n, (std::int64_t{blockIdx.x} + 1) * C::kTile);
  for (std::int64_t i = first; i < end; i += C::kThreads) {
    const std::uint32_t key = keys[i];
    if (key < bins) atomicAdd(&own[key], 1u);
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < bins; b += C::kThreads) {
    if (own[b] != 0) atomicAdd(&counts[b], own[b]);
  }
}

struct Privatised : Level {
  using Config = PrivatisedConfig;
  static constexpr LevelText text{
      .name = "privatised",
      .changed = "a histogram per block in shared memory, added to the counts at the end",
      .expect =
          "at least 5 times as fast, half of the roof: atomics in shared memory run on every SM at "
          "once, but 32 random keys need 3 to 4 wavefronts; all keys equal: no slower, because one "
          "instruction counts the lanes on a word",
      .cost = "1 KB of shared memory per block, 256 atomics in L2 per 4,096 keys",
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    const double blocks = blocks_for(p.n, Config::kTile);
    // Lanes with equal keys are served one after the other.
    const double wavefronts = p.equal == 100 ? kWarpSize : 2;
    const auto relation = p.equal == 100 ? Relation::equal : Relation::at_least;
    return {global_loads("keys").bytes(4 * n),
            global_loads("keys").coalesced(),
            shared_atomics().requests(n / kWarpSize),
            shared_atomics().wavefronts_per_request(wavefronts, relation),
            global_atomics("counts").bytes(4.0 * static_cast<double>(p.bins) * blocks,
                                           Relation::at_most),
            faster_than_previous(5)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(privatised_histogram<Config>,
           {dim3(blocks_for(problem.n, Config::kTile)), dim3(Config::kThreads)}, stream,
           buffers.keys, buffers.counts, problem.bins, problem.n);
  }
};

}  // namespace cookbook::histogram
