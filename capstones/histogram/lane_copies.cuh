// SPDX-License-Identifier: MIT
// A histogram per lane in shared memory, used by levels 2 and 3. The 32 copies of a counter are
// neighbours, so lane l only ever touches bank l.
#pragma once

#include <algorithm>

#include "problem.hpp"

namespace cookbook::histogram {

struct LaneCopiesConfig {
  static constexpr int kThreads = 512;
  static constexpr int kPerThread = 16;                // keys per thread and tile
  static constexpr int kTile = kThreads * kPerThread;  // keys
  static constexpr int kBlocksPerSm = 3;               // 99 KB of copies per SM
  static_assert(kThreads >= kMaxBins, "a thread per bin adds the copies");
};

/// Words of the copies. One more bin than a problem has counts the keys that are out of range: it
/// costs less than a branch per key, and nothing reads it.
inline constexpr int kCopiesWords = (kMaxBins + 1) * kWarpSize;

/// Zeroes the copies of `bins` counters and of the one more. The caller synchronises.
template <class C>
__device__ __forceinline__ void clear_copies(std::uint32_t* copies, unsigned bins) {
  for (unsigned i = threadIdx.x; i < (bins + 1) * kWarpSize; i += C::kThreads) copies[i] = 0;
}

/// Counts `key` in this lane's copy. Other warps of the block share it, so the addition is atomic.
__device__ __forceinline__ void count_in_copy(std::uint32_t* copies, std::uint32_t key,
                                              unsigned bins) {
  atomicAdd(&copies[min(key, bins) * kWarpSize + lane_idx()], 1u);
}

/// Adds the copies of each bin to its count. Thread b begins at copy b % 32, so that the lanes of
/// a warp read 32 banks.
template <class C>
__device__ __forceinline__ void add_copies(const std::uint32_t* copies, std::uint32_t* counts,
                                           unsigned bins) {
  const unsigned bin = threadIdx.x;
  if (bin >= bins) return;
  std::uint32_t sum = 0;
#pragma unroll 8
  for (unsigned k = 0; k < kWarpSize; ++k) {
    sum += copies[bin * kWarpSize + (bin + k) % kWarpSize];
  }
  if (sum != 0) atomicAdd(&counts[bin], sum);
}

/// Blocks of a grid that fills the GPU once, or fewer for few keys.
template <class C>
unsigned resident_blocks(std::int64_t n) {
  const std::int64_t resident = std::int64_t{device_info().sm_count} * C::kBlocksPerSm;
  return static_cast<unsigned>(std::min(resident, ceil_div(n, std::int64_t{C::kTile})));
}

}  // namespace cookbook::histogram
