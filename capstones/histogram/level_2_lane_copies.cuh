// SPDX-License-Identifier: MIT
// Level 2: a copy of the histogram per lane. No two lanes of a warp share a bank, whatever the
// keys. Clearing and adding 32 copies is worth it for many keys, so the grid fills the GPU once.
#pragma once

#include "lane_copies.cuh"

namespace cookbook::histogram {

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    lane_copies_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts,
                          unsigned bins, std::int64_t n) {
  __shared__ std::uint32_t copies[kCopiesWords];
  clear_copies<C>(copies, bins);
  __syncthreads();
  for (std::int64_t begin = std::int64_t{blockIdx.x} * C::kTile; begin < n;
       begin += std::int64_t{gridDim.x} * C::kTile) {
    const std::int64_t end = min(n, begin + C::kTile);
    for (std::int64_t i = begin + threadIdx.x; i < end; i += C::kThreads) {
      count_in_copy(copies, keys[i], bins);
    }
  }
  __syncthreads();
  add_copies<C>(copies, counts, bins);
}

struct LaneCopies : Level {
  using Config = LaneCopiesConfig;
  static constexpr LevelText text{
      .name = "lane_copies",
      .changed = "a copy of the histogram per lane, 32 neighbouring words per bin",
      .expect =
          "one wavefront per atomic for any keys, and 396 merges instead of 65,536: at least 1.2 "
          "times as fast; 24 KB of loads in flight per SM are still too few for the roof",
      .cost = "33 KB of shared memory per block; a grid sized to the SMs",
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("keys").bytes(4 * n),
            global_loads("keys").coalesced(),
            shared_atomics().requests(n / kWarpSize),
            shared_atomics().wavefronts_per_request(1),
            shared_loads().conflict_free(),
            shared_stores().conflict_free(),
            faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(lane_copies_histogram<Config>,
           {dim3(resident_blocks<Config>(problem.n)), dim3(Config::kThreads)}, stream, buffers.keys,
           buffers.counts, problem.bins, problem.n);
  }
};

}  // namespace cookbook::histogram
