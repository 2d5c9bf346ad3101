// SPDX-License-Identifier: MIT
/// @file
/// Thread-block clusters and distributed shared memory, sm_90 (PTX ISA, "Cluster of Cooperative
/// Thread Arrays"). Before sm_90 a block is a cluster of one.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"
#include "common/device/vector.cuh"

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

/// As cluster_arrive, but releases nothing: only "this thread has come". A release at cluster scope
/// is a full memory barrier; where nothing was written yet, there is nothing to publish.
__device__ __forceinline__ void cluster_arrive_relaxed() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
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

/// Barrier over all threads of the cluster. A block whose shared memory others still use must not
/// exit: end such a kernel with this.
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

/// The address, in block `rank` of the cluster, of the object that `pointer` names in this block's
/// shared memory: for plain loads, stores and atomics (PTX ISA, "mapa").
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

/// Stores `value` (4, 8 or 16 bytes) where block `rank` of the cluster has the object that
/// `pointer` names in this block's shared memory, and signals its bytes to the barrier that lies
/// there at the offset of `bar`. Returns at once; who waits for that barrier sees the value (PTX
/// ISA, "st.async").
template <class V>
__device__ __forceinline__ void store_async_cluster(V* pointer, const V& value, uint64_t* bar,
                                                    uint32_t rank) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes");
  const auto word = detail::reinterpret_bits<detail::WordOf<V> >(value);
#define COOKBOOK_ST_ASYNC(TYPE, VALUES, ...)                                         \
  COOKBOOK_ASM_SM90(                                                                 \
      "{\n.reg .b32 to, bar;\n"                                                      \
      "mapa.shared::cluster.u32 to, %0, %2;\n"                                       \
      "mapa.shared::cluster.u32 bar, %1, %2;\n"                                      \
      "st.async.shared::cluster.mbarrier::complete_tx::bytes." TYPE " [to], " VALUES \
      ", [bar];\n}" ::"r"(shared_address(pointer)),                                  \
      "r"(shared_address(bar)), "r"(rank), __VA_ARGS__                               \
      : "memory")
  if constexpr (sizeof(V) == 4) {
    COOKBOOK_ST_ASYNC("b32", "%3", "r"(word));
  } else if constexpr (sizeof(V) == 8) {
    COOKBOOK_ST_ASYNC("v2.b32", "{%3, %4}", "r"(word.x), "r"(word.y));
  } else {
    COOKBOOK_ST_ASYNC("v4.b32", "{%3, %4, %5, %6}", "r"(word.x), "r"(word.y), "r"(word.z),
                      "r"(word.w));
  }
#undef COOKBOOK_ST_ASYNC
}

}  // namespace cookbook

#endif
