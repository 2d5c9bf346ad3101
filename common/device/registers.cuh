// SPDX-License-Identifier: MIT
/// @file
/// What a thread keeps in registers.
#pragma once

#include "common/device/cuda.cuh"

namespace cookbook {

/// `value`. For GPUs of a compute capability below kCapability (90: 9.0) the compiler does not know
/// that. So in a loop it computes what depends on the result in every iteration, instead of once
/// for registers that it does not have.
template <int kCapability>
__device__ __forceinline__ uint32_t not_kept_below(uint32_t value) {
#if defined(__CUDA_ARCH__)
  if constexpr (__CUDA_ARCH__ < 10 * kCapability) asm volatile("" : "+r"(value));
#endif
  return value;
}

}  // namespace cookbook
