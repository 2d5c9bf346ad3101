// SPDX-License-Identifier: MIT
// CUDA's FP8 types for g++: storage and conversions as documented in the CUDA Math API.
#pragma once

#include <cstdint>

#include "common/backend/simt/language/half_types.hpp"

namespace cookbook::simt {

/// The bits of `value` in a format of one byte: kMantissa bits, smallest normal number
/// 2^kMinExponent, largest number `largest` as bits.
template <int kMantissa, int kMinExponent>
COOKBOOK_SIMT_UNTRACED constexpr uint8_t float_to_fp8_bits(float value, uint32_t largest) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;  // NaN
  if (magnitude < static_cast<uint32_t>(127 + kMinExponent) << 23) {
    // Adding a power of two aligns the value so that the adder itself rounds it.
    constexpr uint32_t kAlign = static_cast<uint32_t>(127 + kMinExponent - kMantissa + 23) << 23;
    magnitude = float_bits(bits_float(magnitude) + bits_float(kAlign)) - kAlign;
  } else {
    constexpr int kShift = 23 - kMantissa;
    magnitude += (1u << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1u);
    magnitude = (magnitude - (static_cast<uint32_t>(126 + kMinExponent) << 23)) >> kShift;
  }
  return static_cast<uint8_t>(sign | (magnitude < largest ? magnitude : largest));
}

/// The value of such bits. `first_nan`: the least magnitude that is NaN; the one before it is
/// infinity if `has_infinity`.
template <int kMantissa, int kMinExponent>
COOKBOOK_SIMT_UNTRACED constexpr float fp8_bits_to_float(uint8_t bits, uint32_t first_nan,
                                                         bool has_infinity) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = bits & 0x7fu;
  if (magnitude >= first_nan) return bits_float(sign | 0x7fc00000u);
  if (has_infinity && magnitude + 1 == first_nan) return bits_float(sign | 0x7f800000u);
  const uint32_t exponent = magnitude >> kMantissa;
  const uint32_t fraction = magnitude & ((1u << kMantissa) - 1);
  if (exponent == 0) {
    const float unit = bits_float(static_cast<uint32_t>(127 + kMinExponent - kMantissa) << 23);
    return bits_float(sign | float_bits(static_cast<float>(fraction) * unit));
  }
  return bits_float(sign | (exponent + 126 + kMinExponent) << 23 | fraction << (23 - kMantissa));
}

}  // namespace cookbook::simt

#define COOKBOOK_SIMT_FP8_TYPE(TYPE, MANTISSA, MIN_EXPONENT, LARGEST, FIRST_NAN, HAS_INFINITY) \
  struct TYPE {                                                                                \
    uint8_t __x;                                                                               \
    TYPE() = default;                                                                          \
    constexpr explicit TYPE(float value)                                                       \
        : __x(cookbook::simt::float_to_fp8_bits<MANTISSA, MIN_EXPONENT>(value, LARGEST)) {}    \
    constexpr explicit operator float() const {                                                \
      return cookbook::simt::fp8_bits_to_float<MANTISSA, MIN_EXPONENT>(__x, FIRST_NAN,         \
                                                                       HAS_INFINITY);          \
    }                                                                                          \
  };

COOKBOOK_SIMT_FP8_TYPE(__nv_fp8_e4m3, 3, -6, 0x7e, 0x7f, false)
COOKBOOK_SIMT_FP8_TYPE(__nv_fp8_e5m2, 2, -14, 0x7b, 0x7d, true)

#undef COOKBOOK_SIMT_FP8_TYPE
