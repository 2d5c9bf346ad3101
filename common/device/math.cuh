// SPDX-License-Identifier: MIT
/// @file
/// Fast arithmetic for which CUDA C++ has no function, and packing of two numbers into one
/// register.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/device/cuda.cuh"
#include "common/device/vector.cuh"

namespace cookbook {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;
/// Means "no key yet" in running maxima.
inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// 2^x on the special-function unit, denormal inputs and results flushed to zero (PTX ISA,
/// "ex2.approx.ftz.f32"): relative error about 2^-22; -inf gives 0. `exp2f` without -ftz=true wraps
/// the same instruction in a range test, a scaling and a multiplication.
__device__ __forceinline__ float ex2_approx_ftz(float x) {
#if defined(__CUDACC__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  const float result = exp2f(x);
  return result < std::numeric_limits<float>::min() ? 0.0f : result;  // NaN stays
#endif
}

/// 2^x for x <= 0 without the special-function unit: the integer part goes directly into the
/// exponent field, and a cubic on the FMA units computes the rest (as in FlashAttention-4).
/// Relative error below 2^-13.7; rounding to bf16 adds up to 2^-8. x < -126, and -inf, give the
/// result of -126. It and those of the 13 floats above -126 are denormal, with an error of up to
/// 2^-12.7. NaN is not preserved.
__device__ __forceinline__ float exp2_polynomial(float x) {
  x = fmaxf(x, -126.0f);
  const float shifted = x + 12582912.0f;               // 1.5 * 2^23: round(x) in the low bits
  const float fraction = x - (shifted - 12582912.0f);  // [-0.5, 0.5]
  float p = __fmaf_rn(fraction, 0.0551716672f, 0.2426111221f);  // minimax for the relative error
  p = __fmaf_rn(p, fraction, 0.6932609858f);
  p = __fmaf_rn(p, fraction, 0.9999280736f);
  return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

/// The largest of three integers: one instruction on Hopper (CUDA C++, "__vimax3_s32").
__device__ __forceinline__ int max3(int a, int b, int c) {
#if defined(__CUDACC__)
  return __vimax3_s32(a, b, c);
#else
  const int ab = a > b ? a : b;
  return ab > c ? ab : c;
#endif
}

/// Rounds two floats to T (bf16 or half) and packs them: `low` in bits 0..15.
template <class T>
__device__ __forceinline__ uint32_t pack_pair(float low, float high) {
  if constexpr (std::is_same_v<T, bf16>) {
    return detail::reinterpret_bits<uint32_t>(__floats2bfloat162_rn(low, high));
  } else {
    static_assert(std::is_same_v<T, half>, "bf16 or half");
    return detail::reinterpret_bits<uint32_t>(__floats2half2_rn(low, high));
  }
}

/// A bf16 or half as a float.
template <class T>
__device__ __forceinline__ float to_float(T value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __bfloat162float(value);
  } else {
    return __half2float(value);
  }
}

/// A float rounded to bf16 or half.
template <class T>
__device__ __forceinline__ T from_float(float value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return __float2bfloat16_rn(value);
  } else {
    return __float2half_rn(value);
  }
}

}  // namespace cookbook
