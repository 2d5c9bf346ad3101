// SPDX-License-Identifier: MIT
/// @file
/// Two 16-bit elements in one register, as mma.sync, stmatrix and 4-byte stores want them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/device/cuda.cuh"
#include "common/device/vector.cuh"

namespace cookbook {

/// Two fp32 values rounded to T (bf16 or half), the first in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t to_pair(float low, float high) {
  if constexpr (std::is_same_v<T, bf16>) {
    return detail::reinterpret_bits<std::uint32_t>(__floats2bfloat162_rn(low, high));
  } else {
    return detail::reinterpret_bits<std::uint32_t>(__floats2half2_rn(low, high));
  }
}

}  // namespace cookbook
