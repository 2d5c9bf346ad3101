// SPDX-License-Identifier: MIT
// Level 3: four loads of 16 bytes per thread are in flight before the first key is counted.
#pragma once

#include "lane_copies.cuh"

namespace cookbook::histogram {

using Keys = Pack<std::uint32_t, 4>;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    wide_histogram(const std::uint32_t* __restrict__ keys, std::uint32_t* counts, unsigned bins,
                   std::int64_t n) {
  constexpr int kLoads = C::kPerThread / 4;
  __shared__ std::uint32_t copies[kCopiesWords];
  clear_copies<C>(copies, bins);
  __syncthreads();
  // Packs begin at the first multiple of 16 bytes. Block 0 counts the keys before and after them.
  const auto address = reinterpret_cast<std::uintptr_t>(keys);
  const std::int64_t head = min(n, static_cast<std::int64_t>((0 - address) % 16 / 4));
  const std::int64_t packs = (n - head) / 4;
  const std::int64_t tail = head + 4 * packs;
  const std::int64_t stride = std::int64_t{gridDim.x} * C::kThreads * kLoads;
  for (std::int64_t first = std::int64_t{blockIdx.x} * C::kThreads * kLoads + threadIdx.x;
       first < packs; first += stride) {
    Keys batch[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const std::int64_t i = first + k * C::kThreads;
      batch[k] = {~0u, ~0u, ~0u, ~0u};  // out of range: not counted
      if (i < packs) batch[k] = load_vector_streaming<Keys>(keys + head + 4 * i);
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
#pragma unroll
      for (int j = 0; j < 4; ++j) count_in_copy(copies, batch[k][j], bins);
    }
  }
  if (blockIdx.x == 0) {
    const std::int64_t rest = head + n - tail;  // at most 6 keys
    if (threadIdx.x < rest) {
      const std::int64_t i = threadIdx.x < head ? threadIdx.x : tail + threadIdx.x - head;
      count_in_copy(copies, keys[i], bins);
    }
  }
  __syncthreads();
  add_copies<C>(copies, counts, bins);
}

struct WideLoads : Level {
  using Config = LaneCopiesConfig;
  static constexpr LevelText text{
      .name = "wide_loads",
      .changed = "four loads of 16 bytes per thread before the first key is counted",
      .expect =
          "0.95 of the read roof, for random and for equal keys: 96 KB per SM are in flight, and "
          "counting takes a third of the time that the keys take to arrive",
      .cost = "16 registers for the keys; keys before and after the packs are a special case",
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("keys").bytes(4 * n),
            global_loads("keys").coalesced(),
            global_loads("keys").requests(n / 4 / kWarpSize),
            shared_atomics().requests(n / kWarpSize),
            shared_atomics().wavefronts_per_request(1),
            faster_than_previous(1.05),
            fraction_of_roof(0.95),
            against_library("cub::DeviceHistogram", 0.95)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, buffers] = plan;
    clear(problem, buffers, stream);
    launch(wide_histogram<Config>,
           {dim3(resident_blocks<Config>(problem.n)), dim3(Config::kThreads)}, stream, buffers.keys,
           buffers.counts, problem.bins, problem.n);
  }
};

}  // namespace cookbook::histogram
