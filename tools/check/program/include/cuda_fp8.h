// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>

#include "common/backend/simt/language/fp8_types.hpp"
#include "cuda_runtime.h"

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

namespace cookbook::simt::program {
/// CUDA's x2 and x4 types: two or four numbers of one byte each, x the lowest.
template <class One, class Floats, class Storage>
struct PackedBytes {
  Storage __x;
  PackedBytes() = default;
  explicit PackedBytes(const Floats& values) {
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
