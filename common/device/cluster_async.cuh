// SPDX-License-Identifier: MIT
/// @file
/// Signals between the blocks of a cluster without a full barrier, sm_90: that a block has started,
/// and values that signal their own arrival (PTX ISA, "barrier.cluster" and "st.async").
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cluster.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/vector.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/cluster_async.hpp"
#else

namespace cookbook {

/// As cluster_arrive, but without a release: it only signals that this thread has arrived. A
/// release at cluster scope is a full memory barrier. If nothing was written yet, there is nothing
/// to release.
__device__ __forceinline__ void cluster_arrive_relaxed() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

#define COOKBOOK_ST_ASYNC(TYPE, VALUES, ...)                                         \
  COOKBOOK_ASM_SM90(                                                                 \
      "{\n.reg .b32 to, bar;\n"                                                      \
      "mapa.shared::cluster.u32 to, %0, %2;\n"                                       \
      "mapa.shared::cluster.u32 bar, %1, %2;\n"                                      \
      "st.async.shared::cluster.mbarrier::complete_tx::bytes." TYPE " [to], " VALUES \
      ", [bar];\n}" ::"r"(shared_address(pointer)),                                  \
      "r"(shared_address(bar)), "r"(rank), __VA_ARGS__                               \
      : "memory")

/// Stores `value` (4, 8 or 16 bytes) to the object in block `rank` of the cluster that `pointer`
/// names in this block's shared memory. Signals its bytes to that block's barrier at the offset of
/// `bar`. Returns at once; a thread that waits for that barrier with mbarrier_wait_cluster sees the
/// value. That block must have initialised the barrier, and must not exit before it has waited.
template <class V>
__device__ __forceinline__ void store_async_cluster(V* pointer, const V& value, uint64_t* bar,
                                                    uint32_t rank) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes");
  const auto word = detail::reinterpret_bits<detail::WordOf<V> >(value);
  if constexpr (sizeof(V) == 4) {
    COOKBOOK_ST_ASYNC("b32", "%3", "r"(word));
  } else if constexpr (sizeof(V) == 8) {
    COOKBOOK_ST_ASYNC("v2.b32", "{%3, %4}", "r"(word.x), "r"(word.y));
  } else {
    COOKBOOK_ST_ASYNC("v4.b32", "{%3, %4, %5, %6}", "r"(word.x), "r"(word.y), "r"(word.z),
                      "r"(word.w));
  }
}

#undef COOKBOOK_ST_ASYNC

}  // namespace cookbook

#endif
