// SPDX-License-Identifier: MIT
// A tile of the scan in registers, shared by levels 2 and 3.
#pragma once

#include "problem.hpp"

namespace cookbook::scan {

struct TileConfig {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kPerThread = 16;                // elements
  static constexpr int kTile = kThreads * kPerThread;  // elements per block
  static constexpr int kPerWarp = kTile / kWarps;      // neighbouring elements of one warp
};

/// Index in the tile of this thread's first element; the others follow at strides of 32.
template <class C>
__device__ __forceinline__ int first_in_tile() {
  return warp_idx() * C::kPerWarp + lane_idx();
}

/// Loads a tile that begins at element `begin`; zeros from element n on.
template <class C>
__device__ __forceinline__ void load_tile(const float* __restrict__ in, std::int64_t begin,
                                          std::int64_t n, float (&values)[C::kPerThread]) {
  const std::int64_t first = begin + first_in_tile<C>();
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) {
    const std::int64_t i = first + k * kWarpSize;
    values[k] = i < n ? in[i] : 0.0f;  // [load]
  }
}

/// Sums of all lanes up to this one. All lanes of the warp must call.
__device__ __forceinline__ float warp_inclusive_sum(float value) {
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const float other = __shfl_up_sync(kFullWarp, value, distance);
    if (lane_idx() >= distance) value = other + value;
  }
  return value;
}

/// Scans the tile in place. `totals`: shared memory for kWarps values. Returns the tile's sum, in
/// every thread. All threads of the block must call.
template <class C>
__device__ __forceinline__ float scan_tile(float (&values)[C::kPerThread], float* totals) {
  float carry = 0;
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) {  // the scans are independent; only `carry` is a chain
    const float scanned = warp_inclusive_sum(values[k]);
    const float total = __shfl_sync(kFullWarp, scanned, kWarpSize - 1);
    values[k] = carry + scanned;
    carry += total;
  }
  if (lane_idx() == 0) totals[warp_idx()] = carry;
  __syncthreads();
  float before = 0, sum = 0;
#pragma unroll
  for (int w = 0; w < C::kWarps; ++w) {
    if (w == warp_idx()) before = sum;
    sum += totals[w];
  }
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) values[k] = before + values[k];
  return sum;
}

/// Stores a scanned tile, with `before` added to every element.
template <class C>
__device__ __forceinline__ void store_tile(float* __restrict__ out, std::int64_t begin,
                                           std::int64_t n, const float (&values)[C::kPerThread],
                                           float before) {
  const std::int64_t first = begin + first_in_tile<C>();
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) {
    const std::int64_t i = first + k * kWarpSize;
    if (i < n) out[i] = before + values[k];  // [store]
  }
}

}  // namespace cookbook::scan
