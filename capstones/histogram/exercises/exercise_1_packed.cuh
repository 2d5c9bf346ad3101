// SPDX-License-Identifier: MIT
// Exercise 1: two counters of 16 bits share a word, so the histogram takes half the shared memory.
// It is right for random keys. If most keys are equal, a counter overflows into its neighbour.
#pragma once

#include "../problem.hpp"

namespace cookbook::histogram {

struct PackedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kPerThread = 512;               // keys
  static constexpr int kTile = kThreads * kPerThread;  // keys per block: more than 65,535
};

/// Counts `key` in its half of a word: even bins in the low half, odd ones in the high half.
__device__ __forceinline__ void count_packed(std::uint32_t* packed, std::uint32_t key,
                                             unsigned bins) {
  if (key < bins) atomicAdd(&packed[key / 2], key % 2 == 0 ? 1u : 1u << 16);
}

/// Adds what is counted to `counts` and begins again at zero. All threads of the block must call.
template <class C>
__device__ __forceinline__ void empty_packed(std::uint32_t* packed, std::uint32_t* counts,
                                             unsigned bins) {
  __syncthreads();
  for (unsigned b = threadIdx.x; b < bins; b += C::kThreads) {
    const std::uint32_t count = packed[b / 2] >> 16 * (b % 2) & 0xffff;
    if (count != 0) atomicAdd(&counts[b], count);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kMaxBins / 2; i += C::kThreads) packed[i] = 0;
  __syncthreads();
}

/// Counts keys[begin] .. keys[end - 1] of this block: your part. `packed` is zero at first. No
/// counter may count more than 65,535 keys before empty_packed(), which should be called rarely.
template <class C>
__device__ __forceinline__ void count_keys(const std::uint32_t* __restrict__ keys,
                                           std::int64_t begin, std::int64_t end,
                                           std::uint32_t* packed, std::uint32_t* counts,
                                           unsigned bins) {
  for (std::int64_t i = begin + threadIdx.x; i < end; i += C::kThreads) {
    count_packed(packed, keys[i], bins);
  }
  empty_packed<C>(packed, counts, bins);
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    packed_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts, unsigned bins,
                     std::int64_t n) {
  __shared__ std::uint32_t packed[kMaxBins / 2];
  for (unsigned i = threadIdx.x; i < kMaxBins / 2; i += C::kThreads) packed[i] = 0;
  __syncthreads();
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kTile;
  count_keys<C>(keys, begin, min(n, begin + C::kTile), packed, counts, bins);
}

struct Packed : Level {
  using Config = PackedConfig;
  static constexpr LevelText text{
      .name = "packed",
      .changed = "counters of 16 bits that are emptied in time",
      .expect = "right for all keys equal, with half the shared memory",
      .cost = "two more barriers each time that the counters are emptied",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("keys").bytes(4.0 * static_cast<double>(p.n)),
            global_atomics("counts").bytes(4.0 * static_cast<double>(p.bins), Relation::at_most)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(packed_histogram<Config>,
           {dim3(blocks_for(problem.n, Config::kTile)), dim3(Config::kThreads)}, stream,
           buffers.keys, buffers.counts, problem.bins, problem.n);
  }
};

}  // namespace cookbook::histogram
