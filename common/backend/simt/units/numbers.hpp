// SPDX-License-Identifier: MIT
// Values of the tensor cores' input formats, from their bits.
#pragma once

#include <cstdint>
#include <cstring>

// Compiled twice, for processors with and without AVX2. Neither fuses the multiplication with the
// addition, so both give the same bits.
#if defined(__x86_64__) && !defined(__clang__)
#define COOKBOOK_SIMT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define COOKBOOK_SIMT_WIDE
#endif

namespace cookbook::simt {

/// What a tensor-core operand's bits mean.
enum class Format : uint8_t { bf16, f16, tf32, e4m3 };

inline float float_from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float bf16_value(uint16_t bits) { return float_from_bits(uint32_t{bits} << 16); }

inline float half_value(uint16_t bits) {
  // Without branches: emulated tensor cores convert every operand. The biases of the exponents
  // differ by 112; multiplying by 2^112 is exact, for subnormal numbers too.
  const uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  const uint32_t value = bits_of_float(float_from_bits(magnitude) * 0x1p112f);
  const uint32_t not_finite = magnitude >= 0x0f800000u ? 0x7f800000u : 0;
  return float_from_bits(value | not_finite | uint32_t{bits & 0x8000u} << 16);
}

/// FP8 with 4 exponent and 3 mantissa bits: no infinities, 0x7f is NaN.
inline float e4m3_value(uint8_t bits) {
  const uint32_t sign = uint32_t{bits & 0x80u} << 24;
  const uint32_t exponent = (bits >> 3) & 0xf;
  const uint32_t mantissa = bits & 7;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 15 && mantissa == 7) return float_from_bits(sign | 0x7fc00000u);
  return float_from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
}

/// The tensor core ignores the 13 low bits of a tf32 operand.
inline float tf32_value(uint32_t bits) { return float_from_bits(bits & 0xffffe000u); }

inline uint16_t bf16_from_float(float value) {
  const uint32_t bits = bits_of_float(value);
  if (value != value) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline uint16_t half_from_float(float value) {
  const uint32_t bits = bits_of_float(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00;  // rounds beyond 65,504
  if (magnitude < 0x38800000u) {                       // below 2^-14: subnormal
    // Adding 0.5 aligns the ulp of the sum with the subnormal's, and rounds to nearest even.
    const float rounded = float_from_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of_float(rounded) - bits_of_float(0.5f)));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace cookbook::simt
