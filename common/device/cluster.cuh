// SPDX-License-Identifier: MIT
/// @file
/// Thread-block clusters and distributed shared memory, sm_90 (PTX ISA, "Cluster of Cooperative
/// Thread Arrays"). Before sm_90 a block is a cluster of one.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/cluster.hpp"
#else

namespace cookbook {

/// Rank of this block in its cluster (`%cluster_ctarank`).
__device__ __forceinline__ uint32_t cluster_block_rank() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#else
  return 0;
#endif
}

/// Number of blocks in the cluster (`%cluster_nctarank`).
__device__ __forceinline__ uint32_t cluster_size() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
#else
  return 1;
#endif
}

/// First half of cluster_sync(): announces this thread and releases its writes (PTX ISA,
/// "barrier.cluster"). Every thread of the cluster must call.
__device__ __forceinline__ void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/// Second half: returns when every thread of the cluster has arrived, and acquires their writes.
__device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

/// Barrier over all threads of the cluster. A block whose shared memory other blocks still use must
/// not exit: end such a kernel with this.
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// The address, in block `rank` of the cluster, of the object that `pointer` names in this block's
/// shared memory. For plain loads, stores and atomics (PTX ISA, "mapa").
template <class T>
__device__ __forceinline__ T* map_shared(T* pointer, uint32_t rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint64_t mapped;
  asm volatile("mapa.u64 %0, %1, %2;"
               : "=l"(mapped)
               : "l"(reinterpret_cast<uint64_t>(pointer)), "r"(rank));
  return reinterpret_cast<T*>(mapped);
#else
  return pointer;
#endif
}

}  // namespace cookbook

#endif
