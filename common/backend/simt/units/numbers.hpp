// SPDX-License-Identifier: MIT
// The tensor cores' input formats. Conversions of all but tf32 are those of CUDA's types
// (language/half_types.hpp, language/fp8_types.hpp).
#pragma once

#include <cstdint>

#if !defined(COOKBOOK_CUDA)  // host code of a CUDA build has CUDA's own types
#include "common/backend/simt/language/fp8_types.hpp"
#endif

// Compiled twice, for processors with and without AVX2. Neither fuses the multiplication with the
// addition, so both give the same bits.
#if defined(__x86_64__) && !defined(__clang__)
#define COOKBOOK_SIMT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define COOKBOOK_SIMT_WIDE
#endif

namespace cookbook::simt {

/// What a tensor-core operand's bits mean.
enum class Format : uint8_t { bf16, f16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1 };

#if !defined(COOKBOOK_CUDA)
/// FP8 with 4 exponent and 3 mantissa bits: no infinities, 0x7f is NaN.
inline float e4m3_bits_to_float(uint8_t bits) {
  return fp8_bits_to_float<3, -6>(bits, 0x7f, false);
}

/// FP6 and FP4 with an exponent field of `exponent_bits`: neither infinities nor NaN.
inline float narrow_bits_to_float(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t magnitude = bits & ((1u << (exponent_bits + mantissa_bits)) - 1);
  const uint32_t field = magnitude >> mantissa_bits;
  const uint32_t fraction = magnitude & ((1u << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - bias - mantissa_bits;
  const auto whole = static_cast<float>(fraction + (field == 0 ? 0 : 1u << mantissa_bits));
  const float value = whole * bits_float(static_cast<uint32_t>(exponent + 127) << 23);
  return (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -value : value;
}

/// The tensor core ignores the 13 low bits of a tf32 operand.
inline float tf32_value(uint32_t bits) { return bits_float(bits & 0xffffe000u); }
#endif

}  // namespace cookbook::simt
