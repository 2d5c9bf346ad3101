// SPDX-License-Identifier: MIT
#pragma once

#include "cuda_runtime.h"

/// Copies `bytes` (4, 8 or 16), of which the last `zeros` are zeros.
__forceinline__ void __pipeline_memcpy_async(void* to, const void* from, size_t bytes,
                                             size_t zeros = 0) {
  cookbook::simt::cp_async(to, from, static_cast<int>(bytes), static_cast<int>(bytes - zeros));
}
__forceinline__ void __pipeline_commit() { cookbook::cp_async_commit(); }
__forceinline__ void __pipeline_wait_prior(int groups) { cookbook::simt::cp_async_wait(groups); }
