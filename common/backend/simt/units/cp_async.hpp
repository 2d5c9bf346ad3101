// SPDX-License-Identifier: MIT
// cp.async on the SIMT backend; what the functions do is documented in common/device/cp_async.cuh.
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void cp_async(void* smem, const void* gmem, int bytes, int valid_bytes);
void cp_async_wait(int pending_groups);

}  // namespace simt

template <int kBytes>
__forceinline__ void cp_async(void* smem, const void* gmem) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  simt::cp_async(smem, gmem, kBytes, kBytes);
}

template <int kBytes>
__forceinline__ void cp_async_zfill(void* smem, const void* gmem, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  simt::cp_async(smem, gmem, kBytes, valid_bytes);
}

void cp_async_commit();

template <int kPendingGroups>
__forceinline__ void cp_async_wait() {
  simt::cp_async_wait(kPendingGroups);
}

void cp_async_mbarrier_arrive_noinc(uint64_t* bar);

}  // namespace cookbook
