// SPDX-License-Identifier: MIT
// TMA on the SIMT backend; what the functions do is documented in common/device/tma.cuh.
#pragma once

#include <array>
#include <cstdint>

#include "common/backend/tensor_map.hpp"
#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void bulk_wait(int pending_groups, bool only_reads);

// Copies of any rank; `at` is the innermost coordinate first.
using Coordinates = std::array<int64_t, 5>;
void tma_load(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at, int rank);
void tma_multicast(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at, int rank,
                   uint16_t mask);
// With .cta_group::2 (sm_100): `bar` may be in the other block of the pair, too. A multicast
// signals the barrier at its offset in the block of each receiver's pair that has the parity of
// `bar`'s.
void tma_load_pair(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at,
                   int rank);
void tma_multicast_pair(void* smem, const TensorMap* map, uint64_t* bar, const Coordinates& at,
                        int rank, uint16_t mask);
void tma_store(const TensorMap* map, const void* smem, const Coordinates& at, int rank, bool add);

}  // namespace simt

// L2 is not modelled, so the cache policies change nothing.
void tma_prefetch_descriptor(const TensorMap* map);
void tma_load_1d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                 CachePolicy policy = CachePolicy::evict_normal);
void tma_load_2d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y,
                 CachePolicy policy = CachePolicy::evict_normal);
void tma_load_3d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z,
                 CachePolicy policy = CachePolicy::evict_normal);
void tma_load_4d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z, int w,
                 CachePolicy policy = CachePolicy::evict_normal);
void tma_load_5d(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z, int w, int v,
                 CachePolicy policy = CachePolicy::evict_normal);
void tma_load_2d_multicast(void* smem, const TensorMap* map, uint64_t* bar, int x, int y,
                           uint16_t mask, CachePolicy policy = CachePolicy::evict_normal);
void tma_load_4d_multicast(void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z,
                           int w, uint16_t mask, CachePolicy policy = CachePolicy::evict_normal);
void tma_store_2d(const TensorMap* map, const void* smem, int x, int y);
void tma_store_3d(const TensorMap* map, const void* smem, int x, int y, int z);
void tma_store_add_2d(const TensorMap* map, const void* smem, int x, int y);
void tma_store_commit();
void bulk_load(void* smem, const void* gmem, uint32_t bytes, uint64_t* bar,
               CachePolicy policy = CachePolicy::evict_normal);
void bulk_store(void* gmem, const void* smem, uint32_t bytes);
void fence_proxy_async();
void fence_proxy_async_global();

template <int kPendingGroups>
__forceinline__ void tma_store_wait_read() {
  simt::bulk_wait(kPendingGroups, true);
}

template <int kPendingGroups>
__forceinline__ void tma_store_wait() {
  simt::bulk_wait(kPendingGroups, false);
}

}  // namespace cookbook
