// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>

#include "common/backend/simt/language/fp8_types.hpp"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned;

/// What is too large becomes the largest number, or NaN (E4M3) and infinity (E5M2).
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation,
                                                __nv_fp8_interpretation_t kind) {
  const bool clamps = saturation == __NV_SATFINITE;
  if (value != value) return 0x7f;
  return kind == __NV_E4M3 ? cookbook::simt::float_to_fp8_bits<3, -6>(value, clamps ? 0x7e : 0x7f)
                           : cookbook::simt::float_to_fp8_bits<2, -14>(value, clamps ? 0x7b : 0x7c);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(cookbook::simt::double_to_float_odd(value), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(float(__half(value)), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value,
                                                      __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(float(__nv_bfloat16(value)), saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 value, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t kind) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(value.x, saturation, kind) |
                                           __nv_cvt_float_to_fp8(value.y, saturation, kind) << 8);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t kind) {
  return __half_raw(__half(kind == __NV_E4M3
                               ? cookbook::simt::fp8_bits_to_float<3, -6>(bits, 0x7f, false)
                               : cookbook::simt::fp8_bits_to_float<2, -14>(bits, 0x7d, true)));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t bits,
                                              __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(bits), kind).x,
          __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(bits >> 8), kind).x};
}

/// A power of two, as a scale of a block: 2^(bits - 127), 255 is NaN. Rounded up from a float.
struct __nv_fp8_e8m0 {
  unsigned char __x;
  __nv_fp8_e8m0() = default;
  explicit __nv_fp8_e8m0(float value) {
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(value), &exponent);
    const int up = exponent - (fraction == 0.5f ? 1 : 0) + 127;
    __x = static_cast<unsigned char>(value != value ? 255 : up < 0 ? 0 : up > 254 ? 254 : up);
  }
  explicit operator float() const {
    return __x == 255 ? std::nanf("") : std::ldexp(1.0f, __x - 127);
  }
};

/// The exponent of a power of two that is at least `value`, or at most it (cudaRoundZero).
inline __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float value, __nv_saturation_t,
                                                 cudaRoundMode round) {
  const __nv_fp8_e8m0 up(value);
  const bool down = round == cudaRoundZero && up.__x != 255 && static_cast<float>(up) > value;
  return static_cast<unsigned char>(up.__x - (down ? 1 : 0));
}

namespace cookbook::simt::program {
/// CUDA's x2 and x4 types: two or four numbers of one byte each, x the lowest.
template <class One, class Floats, class Storage>
struct PackedBytes {
  Storage __x;
  PackedBytes() = default;
  explicit PackedBytes(Floats values) {
    float all[sizeof(Storage)];
    unsigned char bytes[sizeof(Storage)];
    __builtin_memcpy(all, &values, sizeof all);
    for (unsigned i = 0; i < sizeof(Storage); ++i) bytes[i] = One(all[i]).__x;
    __builtin_memcpy(&__x, bytes, sizeof __x);
  }
  explicit operator Floats() const {
    Floats values;
    float all[sizeof(Storage)];
    for (unsigned i = 0; i < sizeof(Storage); ++i) {
      One one;
      one.__x = static_cast<unsigned char>(__x >> (8 * i));
      all[i] = static_cast<float>(one);
    }
    __builtin_memcpy(static_cast<void*>(&values), all, sizeof all);
    return values;
  }
};
template <class One>
using TwoBytes = PackedBytes<One, float2, unsigned short>;
template <class One>
using FourBytes = PackedBytes<One, float4, unsigned>;
}  // namespace cookbook::simt::program

using __nv_fp8x2_e4m3 = cookbook::simt::program::TwoBytes<__nv_fp8_e4m3>;
using __nv_fp8x2_e5m2 = cookbook::simt::program::TwoBytes<__nv_fp8_e5m2>;
using __nv_fp8x2_e8m0 = cookbook::simt::program::TwoBytes<__nv_fp8_e8m0>;
using __nv_fp8x4_e4m3 = cookbook::simt::program::FourBytes<__nv_fp8_e4m3>;
using __nv_fp8x4_e5m2 = cookbook::simt::program::FourBytes<__nv_fp8_e5m2>;
using __nv_fp8x4_e8m0 = cookbook::simt::program::FourBytes<__nv_fp8_e8m0>;
