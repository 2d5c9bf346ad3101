// SPDX-License-Identifier: MIT
// Solution: the counters are emptied before one of them can count 65,536 keys.
#pragma once

#include "capstones/histogram/problem.hpp"

namespace cookbook::histogram {

struct PackedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kTile = 512 * kThreads;                // keys per block
  static constexpr int kRound = 65535 / kThreads * kThreads;  // keys between two emptyings
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    packed_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts, unsigned bins,
                     std::int64_t n) {
  __shared__ std::uint32_t packed[kMaxBins / 2];
  for (unsigned i = threadIdx.x; i < kMaxBins / 2; i += C::kThreads) packed[i] = 0;
  __syncthreads();
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kTile;
  const std::int64_t end = min(n, begin + C::kTile);
  for (std::int64_t round = begin; round < end; round += C::kRound) {
    const std::int64_t round_end = min(end, round + C::kRound);
    for (std::int64_t i = round + threadIdx.x; i < round_end; i += C::kThreads) {
      const std::uint32_t key = keys[i];
      if (key < bins) atomicAdd(&packed[key / 2], key % 2 == 0 ? 1u : 1u << 16);
    }
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += C::kThreads) {
      const std::uint32_t count = packed[b / 2] >> 16 * (b % 2) & 0xffff;
      if (count != 0) atomicAdd(&counts[b], count);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < kMaxBins / 2; i += C::kThreads) packed[i] = 0;
    __syncthreads();
  }
}

template <class C>
struct PackedLevel : Level {
  using Config = C;
  /// As the exercise claims: counters are emptied rarely.
  static Claims claims(const Problem& p) {
    return {global_loads("keys").bytes(4.0 * static_cast<double>(p.n)),
            global_atomics("counts").bytes(4.0 * static_cast<double>(p.bins), Relation::at_most)};
  }
  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(packed_histogram<C>, {dim3(blocks_for(problem.n, C::kTile)), dim3(C::kThreads)}, stream,
           buffers.keys, buffers.counts, problem.bins, problem.n);
  }
};

struct Packed : PackedLevel<PackedConfig> {
  static constexpr LevelText text{.name = "packed", .changed = "emptied every 65,280 keys"};
};

namespace wrong {

/// A counter that has counted them all is 0 again, and its neighbour is one too many.
struct LateConfig : PackedConfig {
  static constexpr int kRound = 65536;
};

struct Packed : PackedLevel<LateConfig> {
  static constexpr LevelText text{.name = "packed", .changed = "emptied every 65,536 keys"};
};

}  // namespace wrong
}  // namespace cookbook::histogram
