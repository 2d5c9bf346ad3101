// SPDX-License-Identifier: MIT
// Level 0: a pass per bit, from the lowest on. A pass moves the pairs whose bit is 0 before those
// whose bit is 1 and keeps the order within both, so after 32 passes the keys are sorted.
#pragma once

#include "problem.hpp"

namespace cookbook::radix_sort {

struct NaiveConfig {
  static constexpr int kThreads = 256;  // pairs per block
  static constexpr int kWarps = kThreads / kWarpSize;
};

/// zeros[block] = how many keys of the block have bit `bit` clear.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    count_zeros(const std::uint32_t* __restrict__ keys, std::uint32_t* __restrict__ zeros,
                std::int64_t n, int bit) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const bool is_zero = i < n && (keys[i] >> bit & 1) == 0;  // [count]
  const int count = __syncthreads_count(is_zero);
  if (threadIdx.x == 0) zeros[blockIdx.x] = static_cast<std::uint32_t>(count);
}

/// Replaces each count by the sum of those before it, and adds the sum of all at the end. One
/// block.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    scan_zeros(std::uint32_t* __restrict__ zeros, int blocks) {
  __shared__ std::uint32_t sums[C::kThreads];
  const int each = (blocks + C::kThreads - 1) / C::kThreads;
  const int begin = min(blocks, static_cast<int>(threadIdx.x) * each);
  const int end = min(blocks, begin + each);
  std::uint32_t sum = 0;
  for (int block = begin; block < end; ++block) sum += zeros[block];
  sums[threadIdx.x] = sum;
  __syncthreads();
  std::uint32_t before = 0;
  for (unsigned thread = 0; thread < threadIdx.x; ++thread) before += sums[thread];
  for (int block = begin; block < end; ++block) {
    const std::uint32_t count = zeros[block];
    zeros[block] = before;
    before += count;
  }
  if (threadIdx.x == C::kThreads - 1) zeros[blocks] = before;
}

/// Moves every pair to its place.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    split(const std::uint32_t* __restrict__ keys, const std::uint32_t* __restrict__ values,
          std::uint32_t* __restrict__ to_keys, std::uint32_t* __restrict__ to_values,
          const std::uint32_t* __restrict__ zeros, std::int64_t n, int bit) {
  __shared__ int of_warp[C::kWarps];
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::uint32_t key = i < n ? keys[i] : 0xffffffffu;
  const bool is_zero = (key >> bit & 1) == 0;
  const unsigned ballot = __ballot_sync(kFullWarp, is_zero);
  if (lane_idx() == 0) of_warp[warp_idx()] = __popc(ballot);
  __syncthreads();
  std::int64_t zeros_before = zeros[blockIdx.x] + __popc(ballot & ((1u << lane_idx()) - 1));
  for (int warp = 0; warp < warp_idx(); ++warp) zeros_before += of_warp[warp];
  if (i >= n) return;
  const std::int64_t place = is_zero ? zeros_before : zeros[gridDim.x] + (i - zeros_before);
  to_keys[place] = key;          // [move]
  to_values[place] = values[i];  // [move]
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: 32 passes, one bit each",
      .expect =
          "a pass reads a key twice, a value once and writes both: 640 bytes per pair in all, "
          "40 times the fewest, so below 3 % of the roof",
      .cost = "a second array of pairs, 96 launches",
  };
  static constexpr int kBits = 32;

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory keys{}, values{};  // passes alternate between these and the outputs
    DeviceMemory zeros{};
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads().on("count").bytes(4 * n * kBits), global_loads().on("count").coalesced(),
            global_stores().on("move").bytes(8 * n * kBits)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const auto bytes = static_cast<std::size_t>(problem.n + 1) * sizeof(std::uint32_t);
    const std::int64_t blocks = ceil_div(problem.n, std::int64_t{Config::kThreads});
    return {problem, buffers, DeviceMemory(bytes, "other_keys"),
            DeviceMemory(bytes, "other_values"),
            DeviceMemory(static_cast<std::size_t>(blocks + 1) * sizeof(std::uint32_t), "zeros")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const auto blocks = static_cast<unsigned>(ceil_div(n, std::int64_t{Config::kThreads}));
    const LaunchConfig each{dim3(blocks), dim3(Config::kThreads)};
    auto* zeros = plan.zeros.as<std::uint32_t>();
    const std::uint32_t* keys = plan.buffers.keys;
    const std::uint32_t* values = plan.buffers.values;
    for (int bit = 0; bit < kBits; ++bit) {
      const bool to_outputs = bit % 2 == 1;  // so is the last
      auto* to_keys = to_outputs ? plan.buffers.sorted_keys : plan.keys.as<std::uint32_t>();
      auto* to_values = to_outputs ? plan.buffers.sorted_values : plan.values.as<std::uint32_t>();
      launch(count_zeros<Config>, each, stream, keys, zeros, n, bit);
      launch(scan_zeros<Config>, {dim3(blocks > 0 ? 1 : 0), dim3(Config::kThreads)}, stream, zeros,
             static_cast<int>(blocks));
      launch(split<Config>, each, stream, keys, values, to_keys, to_values, zeros, n, bit);
      keys = to_keys, values = to_values;
    }
  }
};

}  // namespace cookbook::radix_sort
