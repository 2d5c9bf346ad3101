// SPDX-License-Identifier: MIT
/// @file
/// The Tensor Memory Accelerator, sm_90: asynchronous copies of whole boxes of a tensor, started by
/// one thread (PTX ISA, "cp.async.bulk.tensor" and "cp.async.bulk").
///
/// Coordinates count elements, innermost dimension first, and may lie outside the tensor:
/// out-of-bounds elements are zero-filled in loads and skipped in stores. The tensor map has the
/// box's size; a load always signals the full box's bytes to its barrier. Shared addresses are
/// 128-byte aligned. Tiles with a swizzle need the alignment of eight spans (1,024 bytes for
/// Swizzle::b128), so that the pattern starts at their first row.
///
/// TMA reads and writes through the async proxy: after plain stores to shared memory, each writer
/// calls fence_proxy_async() before the barrier that precedes the TMA store.
#pragma once

#include "common/backend/tensor_map.hpp"
#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

namespace cookbook {

/// How L2 should treat the bytes of a copy: the encodings that `createpolicy.fractional` returns
/// for a fraction of 1 (PTX ISA, "createpolicy").
enum class CachePolicy : uint64_t {
  evict_normal = 0x1000000000000000ull,
  evict_first = 0x12f0000000000000ull,
  evict_last = 0x14f0000000000000ull,
};

}  // namespace cookbook

#if !defined(__CUDACC__)
#include "common/backend/simt/units/tma.hpp"
#else
#include "common/device/timeline.cuh"

namespace cookbook {

/// Prefetches the descriptor, so that the first copy does not wait for it. `map` is a `const
/// __grid_constant__ TensorMap` parameter (PTX ISA, "prefetch.tensormap").
__device__ __forceinline__ void tma_prefetch_descriptor(const TensorMap* map) {
  COOKBOOK_ASM_SM90("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// For sm_120, ptxas 13.0 makes a call of a copy to shared::cluster, and around a call it ignores
// setmaxnreg (C7506). With the block's own shared memory as destination, it is an instruction.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define COOKBOOK_TMA_TO ".shared::cta"
#else
#define COOKBOOK_TMA_TO ".shared::cluster"
#endif

#define COOKBOOK_TMA_LOAD(DIMENSIONS, COORDINATES, ...)                                     \
  COOKBOOK_ASM_SM90("cp.async.bulk.tensor." DIMENSIONS COOKBOOK_TMA_TO                      \
                    ".global.mbarrier::complete_tx::bytes.L2::cache_hint "                  \
                    "[%0], [%1, {" COORDINATES "}], [%2], %3;" ::"r"(shared_address(smem)), \
                    "l"(map), "r"(shared_address(bar)), "l"(static_cast<uint64_t>(policy)), \
                    __VA_ARGS__                                                             \
                    : "memory")

/// Copies the box at (x) of a 1-D tensor to `smem` and signals its bytes to `bar`. Called by one
/// thread.
__device__ __forceinline__ void tma_load_1d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                            CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_LOAD("1d", "%4", "r"(x));
}

/// Copies the box at (x, y) of a 2-D tensor to `smem` (contiguous rows of box[0] elements, then
/// swizzled) and signals its bytes to `bar`. Called by one thread.
__device__ __forceinline__ void tma_load_2d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                            int y, CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_LOAD("2d", "%4, %5", "r"(x), "r"(y));
}

/// As tma_load_2d, of a 3-D tensor.
__device__ __forceinline__ void tma_load_3d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                            int y, int z,
                                            CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_LOAD("3d", "%4, %5, %6", "r"(x), "r"(y), "r"(z));
}

/// As tma_load_2d, of a 4-D tensor.
__device__ __forceinline__ void tma_load_4d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                            int y, int z, int w,
                                            CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_LOAD("4d", "%4, %5, %6, %7", "r"(x), "r"(y), "r"(z), "r"(w));
}

/// As tma_load_2d, of a 5-D tensor.
__device__ __forceinline__ void tma_load_5d(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                            int y, int z, int w, int v,
                                            CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_LOAD("5d", "%4, %5, %6, %7, %8", "r"(x), "r"(y), "r"(z), "r"(w), "r"(v));
}

#undef COOKBOOK_TMA_LOAD
#undef COOKBOOK_TMA_TO

#define COOKBOOK_TMA_MULTICAST(DIMENSIONS, COORDINATES, ...)                                    \
  COOKBOOK_ASM_SM90A(                                                                           \
      "cp.async.bulk.tensor." DIMENSIONS                                                        \
      ".shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint " \
      "[%0], [%1, {" COORDINATES "}], [%2], %3, %4;" ::"r"(shared_address(smem)),               \
      "l"(map), "r"(shared_address(bar)), "h"(mask), "l"(static_cast<uint64_t>(policy)),        \
      __VA_ARGS__                                                                               \
      : "memory")

/// As tma_load_2d, but the box goes to the same offset in every block of the cluster whose bit is
/// set in `mask`. The full box's bytes are signalled to each of these blocks' barriers at `bar`'s
/// offset.
__device__ __forceinline__ void tma_load_2d_multicast(
    void* smem, const TensorMap* map, uint64_t* bar, int x, int y, uint16_t mask,
    CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_MULTICAST("2d", "%5, %6", "r"(x), "r"(y));
}

/// As tma_load_2d_multicast, of a 4-D tensor.
__device__ __forceinline__ void tma_load_4d_multicast(
    void* smem, const TensorMap* map, uint64_t* bar, int x, int y, int z, int w, uint16_t mask,
    CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_TMA_MULTICAST("4d", "%5, %6, %7, %8", "r"(x), "r"(y), "r"(z), "r"(w));
}

#undef COOKBOOK_TMA_MULTICAST

#define COOKBOOK_TMA_STORE(DIMENSIONS, COORDINATES, ...)                                        \
  COOKBOOK_ASM_SM90("cp.async.bulk.tensor." DIMENSIONS                                          \
                    ".global.shared::cta.bulk_group [%0, {" COORDINATES "}], [%1];" ::"l"(map), \
                    "r"(shared_address(smem)), __VA_ARGS__                                      \
                    : "memory")

/// Copies the box in `smem` to (x, y) of the tensor. The calling thread also calls
/// tma_store_commit() and the waits. Rows are written in whole units of 16 bytes: where the
/// tensor's rows have another length, up to 15 bytes after each are overwritten (measured on an
/// H200).
__device__ __forceinline__ void tma_store_2d(const TensorMap* map, const void* smem, int x, int y) {
  COOKBOOK_TMA_STORE("2d", "%2, %3", "r"(x), "r"(y));
}

/// As tma_store_2d, to a 3-D tensor.
__device__ __forceinline__ void tma_store_3d(const TensorMap* map, const void* smem, int x, int y,
                                             int z) {
  COOKBOOK_TMA_STORE("3d", "%2, %3, %4", "r"(x), "r"(y), "r"(z));
}

#undef COOKBOOK_TMA_STORE

/// Adds the box in `smem` to the tensor at (x, y), element by element, each addition atomic (PTX
/// ISA, "cp.reduce.async.bulk.tensor", `.add`). Groups as for tma_store_2d.
__device__ __forceinline__ void tma_store_add_2d(const TensorMap* map, const void* smem, int x,
                                                 int y) {
  COOKBOOK_ASM_SM90(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" ::
          "l"(map),
      "r"(shared_address(smem)), "r"(x), "r"(y)
      : "memory");
}

/// Closes the group of all stores that this thread started since the last commit (PTX ISA,
/// "cp.async.bulk.commit_group").
__device__ __forceinline__ void tma_store_commit() {
  timeline::moment(timeline::Kind::commit_stores);
  COOKBOOK_ASM_SM90("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all but the `kPendingGroups` latest groups of this thread have read their shared
/// memory, which may then be overwritten (PTX ISA, "cp.async.bulk.wait_group", `.read`).
template <int kPendingGroups>
__device__ __forceinline__ void tma_store_wait_read() {
  timeline::begin(timeline::Kind::wait_stores, 0, kPendingGroups);
  COOKBOOK_ASM_SM90("cp.async.bulk.wait_group.read %0;" ::"n"(kPendingGroups) : "memory");
  timeline::end(timeline::Kind::wait_stores, 0, kPendingGroups);
}

/// Waits until all but the `kPendingGroups` latest groups of this thread are complete: their writes
/// are visible to this thread.
template <int kPendingGroups>
__device__ __forceinline__ void tma_store_wait() {
  timeline::begin(timeline::Kind::wait_stores, 0, kPendingGroups);
  COOKBOOK_ASM_SM90("cp.async.bulk.wait_group %0;" ::"n"(kPendingGroups) : "memory");
  timeline::end(timeline::Kind::wait_stores, 0, kPendingGroups);
}

/// Copies `bytes` contiguous bytes (a multiple of 16; both addresses 16-byte aligned) from global
/// to shared memory and signals them to `bar`. Called by one thread.
__device__ __forceinline__ void bulk_load(void* smem, const void* gmem, uint32_t bytes,
                                          uint64_t* bar,
                                          CachePolicy policy = CachePolicy::evict_normal) {
  COOKBOOK_ASM_SM90(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(smem)),
      "l"(gmem), "r"(bytes), "r"(shared_address(bar)), "l"(static_cast<uint64_t>(policy))
      : "memory");
}

/// Copies `bytes` contiguous bytes from shared to global memory; alignment as bulk_load, groups as
/// tma_store_2d.
__device__ __forceinline__ void bulk_store(void* gmem, const void* smem, uint32_t bytes) {
  COOKBOOK_ASM_SM90("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(gmem),
                    "r"(shared_address(smem)), "r"(bytes)
                    : "memory");
}

/// Orders this thread's plain accesses to shared memory before later accesses of the async proxy:
/// TMA stores and wgmma (PTX ISA, "fence.proxy.async").
__device__ __forceinline__ void fence_proxy_async() {
  COOKBOOK_ASM_SM90("fence.proxy.async.shared::cta;" ::: "memory");
}

/// As fence_proxy_async, for global memory: plain writes that TMA loads will read.
__device__ __forceinline__ void fence_proxy_async_global() {
  COOKBOOK_ASM_SM90("fence.proxy.async.global;" ::: "memory");
}

}  // namespace cookbook

#endif
