// SPDX-License-Identifier: MIT
/// @file
/// Reductions over the threads of a warp and of a block.
#pragma once

#include "common/device/cuda.cuh"

namespace cookbook {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

/// Index of this thread in its block, x fastest.
__device__ __forceinline__ int thread_rank() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

/// Index of this thread in its warp, 0..31.
__device__ __forceinline__ int lane_idx() { return thread_rank() % kWarpSize; }

/// Index of this thread's warp in its block. The compiler does not know that it is uniform: branch
/// on warp_idx_uniform() to avoid predication.
__device__ __forceinline__ int warp_idx() { return thread_rank() / kWarpSize; }

/// warp_idx() broadcast from lane 0, so that the compiler keeps it in a uniform register. All 32
/// lanes of the warp must call.
__device__ __forceinline__ int warp_idx_uniform() { return __shfl_sync(kFullWarp, warp_idx(), 0); }

/// Sum over groups of `kLanes` neighbouring lanes (a power of two), in every lane. All 32 lanes of
/// the warp must call.
template <int kLanes = kWarpSize, class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, offset);
  }
  return value;
}

/// Maximum over groups of `kLanes` neighbouring lanes (a power of two), in every lane. All 32
/// lanes of the warp must call.
template <int kLanes = kWarpSize, class T>
__device__ __forceinline__ T warp_max(T value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value = max(value, __shfl_xor_sync(kFullWarp, value, offset));
  }
  return value;
}

/// Sum over a block of `kThreads` threads (a multiple of 32), in every thread. `scratch`: shared
/// memory for kThreads / 32 values; it may be reused as soon as the call returns. All threads of
/// the block must call.
template <int kThreads, class T>
__device__ __forceinline__ T block_sum(T value, T* scratch) {
  static_assert(kThreads % kWarpSize == 0, "whole warps");
  value = warp_sum(value);
  if constexpr (kThreads > kWarpSize) {
    if (lane_idx() == 0) scratch[warp_idx()] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int i = 1; i < kThreads / kWarpSize; ++i) value += scratch[i];
    __syncthreads();  // all threads must have read scratch before it is overwritten
  }
  return value;
}

}  // namespace cookbook
