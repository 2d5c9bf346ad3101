// SPDX-License-Identifier: MIT
// Clusters on the SIMT backend; what the functions do is documented in common/device/cluster.cuh.
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void* map_shared(const void* pointer, uint32_t rank);
/// Blocks of a cluster along x, y and z.
uint3 cluster_shape();

}  // namespace simt

uint32_t cluster_block_rank();
uint32_t cluster_size();
void cluster_arrive();
void cluster_wait();
void cluster_sync();

template <class T>
__forceinline__ T* map_shared(T* pointer, uint32_t rank) {
  return static_cast<T*>(simt::map_shared(pointer, rank));
}

}  // namespace cookbook
