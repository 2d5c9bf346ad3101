// SPDX-License-Identifier: MIT
// st.async and relaxed arrivals on the SIMT backend; what the functions do is documented in
// common/device/cluster_async.cuh.
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void store_async(void* pointer, const void* value, int bytes, uint64_t* bar, uint32_t rank);

}  // namespace simt

void cluster_arrive_relaxed();

template <class V>
__forceinline__ void store_async_cluster(V* pointer, const V& value, uint64_t* bar, uint32_t rank) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes");
  simt::store_async(pointer, &value, sizeof(V), bar, rank);
}

}  // namespace cookbook
