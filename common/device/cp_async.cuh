// SPDX-License-Identifier: MIT
/// @file
/// Ampere's asynchronous copies from global to shared memory, one per thread (PTX ISA, "cp.async").
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/cp_async.hpp"
#else
#include "common/device/timeline.cuh"

namespace cookbook {

/// Copies `kBytes` (4, 8 or 16) from global `gmem` to shared `smem`, both aligned to kBytes. The
/// calling thread sees the data after cp_async_commit() and cp_async_wait(); other threads also
/// need a barrier. 16-byte copies bypass L1 (`.cg`). Before sm_80: an ordinary copy.
template <int kBytes>
__device__ __forceinline__ void cp_async(void* smem, const void* gmem) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(smem)), "l"(gmem)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(smem)), "l"(gmem),
                 "n"(kBytes)
                 : "memory");
  }
#else
  if constexpr (kBytes == 16) {
    *static_cast<uint4*>(smem) = *static_cast<const uint4*>(gmem);
  } else if constexpr (kBytes == 8) {
    *static_cast<uint2*>(smem) = *static_cast<const uint2*>(gmem);
  } else {
    *static_cast<uint32_t*>(smem) = *static_cast<const uint32_t*>(gmem);
  }
#endif
}

/// As cp_async, but reads only the first `valid_bytes` (0..kBytes); the rest of the destination is
/// zero-filled. `gmem` must be a valid address even if valid_bytes is 0.
template <int kBytes>
__device__ __forceinline__ void cp_async_zfill(void* smem, const void* gmem, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(smem)),
                 "l"(gmem), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(smem)),
                 "l"(gmem), "n"(kBytes), "r"(valid_bytes)
                 : "memory");
  }
#else
  for (int i = 0; i < kBytes; ++i) {
    static_cast<char*>(smem)[i] = i < valid_bytes ? static_cast<const char*>(gmem)[i] : char(0);
  }
#endif
}

/// Closes the group of all copies that this thread started since the last commit (PTX ISA,
/// "cp.async.commit_group"). A group may be empty, which keeps the count right in the last steps of
/// a loop.
__device__ __forceinline__ void cp_async_commit() {
  timeline::moment(timeline::Kind::commit_copies);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the `kPendingGroups` latest groups of this thread are in flight (PTX ISA,
/// "cp.async.wait_group").
template <int kPendingGroups>
__device__ __forceinline__ void cp_async_wait() {
  timeline::begin(timeline::Kind::wait_copies, 0, kPendingGroups);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPendingGroups) : "memory");
#endif
  timeline::end(timeline::Kind::wait_copies, 0, kPendingGroups);
}

/// Signals one arrival to `bar` when all earlier copies of this thread have arrived. `.noinc`: the
/// arrival is one of those that mbarrier_init counted (PTX ISA, "cp.async.mbarrier.arrive").
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(uint64_t* bar) {
  COOKBOOK_ASM_SM80("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(bar))
                    : "memory");
}

}  // namespace cookbook

#endif
