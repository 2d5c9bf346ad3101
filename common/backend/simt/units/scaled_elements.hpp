// SPDX-License-Identifier: MIT
// Operands of block-scaled multiplications, by tcgen05.mma and by mma.sync: what their bits mean.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/backend/simt/units/numbers.hpp"
#include "common/backend/simt/units/tensor_sum.hpp"

namespace cookbook::simt {

// Element `i` of those that lie in a row from `chunk` on.
inline float element_value(const char* chunk, uint32_t i, Format format) {
  const auto byte = [chunk](uint32_t at) { return static_cast<uint8_t>(chunk[at]); };
  switch (format) {
    case Format::bf16:
    case Format::f16: {
      uint16_t bits;
      std::memcpy(&bits, chunk + size_t{2} * i, 2);
      return format == Format::bf16 ? bf16_bits_to_float(bits) : half_bits_to_float(bits);
    }
    case Format::tf32: {
      uint32_t bits;
      std::memcpy(&bits, chunk + size_t{4} * i, 4);
      return tf32_value(bits);
    }
    case Format::e4m3: return e4m3_bits_to_float(byte(i));
    case Format::e5m2: return half_bits_to_float(static_cast<uint16_t>(byte(i) << 8));
    case Format::e2m1:
      // 32 in 16 bytes, or 16 in the first 8 of them.
      return narrow_bits_to_float(byte(i / 2) >> (4 * (i % 2)) & 0xf, 2, 1);
    case Format::e2m3:
    case Format::e3m2: break;
  }
  // Sixteen elements of 6 bits in 12 bytes.
  const uint32_t bit = 6 * i;
  const uint32_t both = byte(bit / 8) | static_cast<uint32_t>(byte(bit / 8 + 1)) << 8;
  const uint32_t bits = both >> (bit % 8) & 0x3f;
  return format == Format::e2m3 ? narrow_bits_to_float(bits, 2, 3)
                                : narrow_bits_to_float(bits, 3, 2);
}

// Element `i` where each has a byte: those of 4 bits are in the middle of it, those of 6 bits in
// the lower ones.
inline float element_in_byte(const char* bytes, uint32_t i, Format format) {
  const auto byte = static_cast<uint8_t>(bytes[i]);
  if (format == Format::e2m1) return narrow_bits_to_float(byte >> 2 & 0xf, 2, 1);
  if (format == Format::e2m3) return narrow_bits_to_float(byte & 0x3f, 2, 3);
  if (format == Format::e3m2) return narrow_bits_to_float(byte & 0x3f, 3, 2);
  return element_value(bytes, i, format);
}

// Bits of an element of a type that has fewer than eight where the type needs padding; 8 otherwise.
inline uint32_t narrow_bits(Format format) {
  if (format == Format::e2m1) return 4;
  return format == Format::e2m3 || format == Format::e3m2 ? 6 : 8;
}

// Makes 16 bytes for element_in_byte() of 16 elements of `bits` bits that lie in a row.
inline void expand_elements(const char* from, uint32_t bits, char* to) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t bit = bits * i;
    uint16_t both;
    std::memcpy(&both, from + bit / 8, 2);
    const uint32_t element = both >> (bit % 8) & ((1u << bits) - 1);
    to[i] = static_cast<char>(bits == 4 ? element << 2 : element);
  }
}

// A scale: UE8M0 is a power of two, UE4M3 an e4m3 without its sign.
inline BlockScale scale_of(uint8_t bits, bool is_ue8m0) {
  if (is_ue8m0) return {1, bits - 127, bits == 0xff};
  const float value = e4m3_bits_to_float(bits & 0x7f);
  const int exponent = value == 0 ? 0 : tensor_exponent(Format::e4m3, value);
  return {std::ldexp(value, -exponent), exponent, value != value};
}

}  // namespace cookbook::simt
