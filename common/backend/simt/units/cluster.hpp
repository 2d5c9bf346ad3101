// SPDX-License-Identifier: MIT
// Clusters on the SIMT backend; what the functions do is documented in common/device/cluster.cuh.
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void* map_shared(const void* pointer, uint32_t rank);
void store_async(void* pointer, const void* value, int bytes, uint64_t* bar, uint32_t rank);

}  // namespace simt

uint32_t cluster_block_rank();
uint32_t cluster_size();
void cluster_arrive();
void cluster_arrive_relaxed();
void cluster_wait();
void cluster_sync();

template <class T>
__forceinline__ T* map_shared(T* pointer, uint32_t rank) {
  return static_cast<T*>(simt::map_shared(pointer, rank));
}

template <class V>
__forceinline__ void store_async_cluster(V* pointer, const V& value, uint64_t* bar, uint32_t rank) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes");
  simt::store_async(pointer, &value, sizeof(V), bar, rank);
}

}  // namespace cookbook
