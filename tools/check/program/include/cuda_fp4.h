// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>

#include "common/backend/simt/units/numbers.hpp"
#include "cuda_fp16.h"
#include "cuda_fp8.h"

// FP4: sign, two bits of exponent, one of mantissa. Two share a byte, the first in its low half.
using __nv_fp4_storage_t = unsigned char;
using __nv_fp4x2_storage_t = unsigned char;
using __nv_fp4x4_storage_t = unsigned short;
enum __nv_fp4_interpretation_t { __NV_E2M1 = 0 };

/// To the nearest, ties to even; beyond 6 it is 6.
inline __nv_fp4_storage_t __nv_cvt_float_to_fp4(float value, __nv_fp4_interpretation_t,
                                                cudaRoundMode) {
  const float magnitude = std::fabs(value);
  unsigned best = 0;
  const auto distance = [magnitude](unsigned bits) {
    return std::fabs(cookbook::simt::narrow_bits_to_float(bits, 2, 1) - magnitude);
  };
  for (unsigned bits = 1; bits < 8; ++bits) {
    const bool is_even_tie = distance(bits) == distance(best) && bits % 2 == 0;
    if (distance(bits) < distance(best) || is_even_tie) best = bits;
  }
  return static_cast<unsigned char>(value != value ? 7 : best | (std::signbit(value) ? 8 : 0));
}
inline __nv_fp4x2_storage_t __nv_cvt_float2_to_fp4x2(float2 values, __nv_fp4_interpretation_t kind,
                                                     cudaRoundMode round) {
  return static_cast<unsigned char>(__nv_cvt_float_to_fp4(values.x, kind, round) |
                                    __nv_cvt_float_to_fp4(values.y, kind, round) << 4);
}
inline __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t bits, __nv_fp4_interpretation_t) {
  return __half_raw(__half(cookbook::simt::narrow_bits_to_float(bits & 15u, 2, 1)));
}
inline __half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t bits,
                                              __nv_fp4_interpretation_t kind) {
  return {__nv_cvt_fp4_to_halfraw(bits & 15u, kind).x,
          __nv_cvt_fp4_to_halfraw(static_cast<unsigned char>(bits >> 4), kind).x};
}

struct __nv_fp4_e2m1 {
  __nv_fp4_storage_t __x;
  __nv_fp4_e2m1() = default;
  explicit __nv_fp4_e2m1(float value)
      : __x(__nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest)) {}
  explicit operator float() const { return cookbook::simt::narrow_bits_to_float(__x & 15u, 2, 1); }
};
struct __nv_fp4x2_e2m1 {
  __nv_fp4x2_storage_t __x;
  __nv_fp4x2_e2m1() = default;
  explicit __nv_fp4x2_e2m1(float2 values)
      : __x(__nv_cvt_float2_to_fp4x2(values, __NV_E2M1, cudaRoundNearest)) {}
  explicit operator float2() const {
    return {cookbook::simt::narrow_bits_to_float(__x & 15u, 2, 1),
            cookbook::simt::narrow_bits_to_float(__x >> 4, 2, 1)};
  }
};
struct __nv_fp4x4_e2m1 {
  __nv_fp4x4_storage_t __x;
  __nv_fp4x4_e2m1() = default;
};
