// SPDX-License-Identifier: MIT
// CUDA's 16-bit floating-point types for g++: storage, conversions and arithmetic as documented in
// the CUDA Math API. Every operation is computed in float (fma in double) and rounded to nearest
// even. Conversions handle subnormals, infinities and NaN; a NaN becomes the canonical 0x7fff.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/backend/simt/language/vector_types.hpp"

// Not part of the kernel as far as counters are concerned: no basic blocks, no accesses.
#if defined(__clang__)
#define COOKBOOK_SIMT_UNTRACED __attribute__((no_sanitize("thread", "coverage")))
#else
#define COOKBOOK_SIMT_UNTRACED __attribute__((no_sanitize("thread"), no_sanitize_coverage))
#endif

namespace cookbook::simt {

[[gnu::always_inline]] constexpr uint32_t float_bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
[[gnu::always_inline]] constexpr float bits_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// The bits of infinity, for a magnitude that is too large. A finite one overflows here as it does
// in the conversion on a GPU, so a trap sees it.
COOKBOOK_SIMT_UNTRACED constexpr uint16_t infinity(uint32_t magnitude, uint16_t bits) {
  if (__builtin_is_constant_evaluated()) return bits;
  return static_cast<uint16_t>(float_bits(bits_float(magnitude) * 0x1p127f) >> 16) & bits;
}

COOKBOOK_SIMT_UNTRACED constexpr uint16_t float_to_half_bits(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;  // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | infinity(magnitude, 0x7c00u));
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    // Adding 0.5 aligns the value so that the adder itself rounds to multiples of 2^-24.
    const uint32_t aligned = float_bits(bits_float(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (aligned - 0x3f000000u));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

COOKBOOK_SIMT_UNTRACED constexpr float half_bits_to_float(uint16_t bits) {
  // Without branches: emulated tensor cores convert every operand. The biases of the exponents
  // differ by 112; multiplying by 2^112 is exact, for subnormal numbers too.
  const uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  const uint32_t value = float_bits(bits_float(magnitude) * 0x1p112f);
  const uint32_t not_finite = magnitude >= 0x0f800000u ? 0x7f800000u : 0;
  return bits_float(value | not_finite | uint32_t{bits & 0x8000u} << 16);
}

COOKBOOK_SIMT_UNTRACED constexpr uint16_t float_to_bf16_bits(float value) {
  const uint32_t bits = float_bits(value), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x7f7f8000u) {
    return static_cast<uint16_t>((bits >> 16 & 0x8000u) | infinity(magnitude, 0x7f80u));
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

[[gnu::always_inline]] constexpr float bf16_bits_to_float(uint16_t bits) {
  return bits_float(static_cast<uint32_t>(bits) << 16);
}

// Rounds to odd, so that rounding the result once more to a 16-bit type is correct.
COOKBOOK_SIMT_UNTRACED constexpr float double_to_float_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || nearest != nearest) return nearest;
  uint32_t bits = float_bits(nearest);
  const double magnitude = value < 0 ? -value : value;
  const double rounded = nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest);
  if (rounded > magnitude) --bits;
  return bits_float(bits | 1u);
}

}  // namespace cookbook::simt

#define COOKBOOK_SIMT_HALF_TYPE(TYPE, TO_BITS, TO_FLOAT)                               \
  struct TYPE {                                                                        \
    uint16_t bits;                                                                     \
    TYPE() = default;                                                                  \
    constexpr TYPE(float value) : bits(cookbook::simt::TO_BITS(value)) {}              \
    constexpr TYPE(double value)                                                       \
        : bits(cookbook::simt::TO_BITS(cookbook::simt::double_to_float_odd(value))) {} \
    template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>    \
    constexpr TYPE(Integer value) : TYPE(static_cast<double>(value)) {}                \
    constexpr operator float() const { return cookbook::simt::TO_FLOAT(bits); }        \
    static constexpr TYPE from_bits(uint16_t bits) {                                   \
      TYPE result(0.0f);                                                               \
      result.bits = bits;                                                              \
      return result;                                                                   \
    }                                                                                  \
    TYPE& operator+=(TYPE b) { return *this = TYPE(float(*this) + float(b)); }         \
    TYPE& operator-=(TYPE b) { return *this = TYPE(float(*this) - float(b)); }         \
    TYPE& operator*=(TYPE b) { return *this = TYPE(float(*this) * float(b)); }         \
    TYPE& operator/=(TYPE b) { return *this = TYPE(float(*this) / float(b)); }         \
  };                                                                                   \
  constexpr TYPE operator+(TYPE a, TYPE b) { return TYPE(float(a) + float(b)); }       \
  constexpr TYPE operator-(TYPE a, TYPE b) { return TYPE(float(a) - float(b)); }       \
  constexpr TYPE operator*(TYPE a, TYPE b) { return TYPE(float(a) * float(b)); }       \
  constexpr TYPE operator/(TYPE a, TYPE b) { return TYPE(float(a) / float(b)); }       \
  constexpr TYPE operator-(TYPE a) {                                                   \
    return TYPE::from_bits(static_cast<uint16_t>(a.bits ^ 0x8000u));                   \
  }                                                                                    \
  constexpr bool operator==(TYPE a, TYPE b) { return float(a) == float(b); }           \
  constexpr bool operator!=(TYPE a, TYPE b) { return float(a) != float(b); }           \
  constexpr bool operator<(TYPE a, TYPE b) { return float(a) < float(b); }             \
  constexpr bool operator>(TYPE a, TYPE b) { return float(a) > float(b); }             \
  constexpr bool operator<=(TYPE a, TYPE b) { return float(a) <= float(b); }           \
  constexpr bool operator>=(TYPE a, TYPE b) { return float(a) >= float(b); }

// Two of them in one register: copied as one 4-byte access.
#define COOKBOOK_SIMT_HALF2_TYPE(TYPE2, TYPE)                                      \
  struct alignas(4) TYPE2 {                                                        \
    typedef uint32_t Whole __attribute__((may_alias));                             \
    TYPE x, y;                                                                     \
    TYPE2() = default;                                                             \
    constexpr TYPE2(TYPE x_, TYPE y_) : x(x_), y(y_) {}                            \
    TYPE2(const TYPE2& other) { whole() = other.whole(); }                         \
    TYPE2& operator=(const TYPE2& other) {                                         \
      whole() = other.whole();                                                     \
      return *this;                                                                \
    }                                                                              \
    Whole& whole() { return *reinterpret_cast<Whole*>(this); }                     \
    const Whole& whole() const { return *reinterpret_cast<const Whole*>(this); }   \
  };                                                                               \
  inline TYPE2 operator+(TYPE2 a, TYPE2 b) { return TYPE2(a.x + b.x, a.y + b.y); } \
  inline TYPE2 operator-(TYPE2 a, TYPE2 b) { return TYPE2(a.x - b.x, a.y - b.y); } \
  inline TYPE2 operator*(TYPE2 a, TYPE2 b) { return TYPE2(a.x * b.x, a.y * b.y); } \
  inline TYPE2 operator/(TYPE2 a, TYPE2 b) { return TYPE2(a.x / b.x, a.y / b.y); } \
  inline TYPE2 operator-(TYPE2 a) { return TYPE2(-a.x, -a.y); }                    \
  inline TYPE2& operator+=(TYPE2& a, TYPE2 b) { return a = a + b; }                \
  inline TYPE2& operator-=(TYPE2& a, TYPE2 b) { return a = a - b; }                \
  inline TYPE2& operator*=(TYPE2& a, TYPE2 b) { return a = a * b; }

// The intrinsics that both families share by overloading, as in cuda_fp16.h and cuda_bf16.h.
#define COOKBOOK_SIMT_HALF_INTRINSICS(TYPE, TYPE2)                                             \
  inline TYPE __hadd(TYPE a, TYPE b) { return a + b; }                                         \
  inline TYPE __hsub(TYPE a, TYPE b) { return a - b; }                                         \
  inline TYPE __hmul(TYPE a, TYPE b) { return a * b; }                                         \
  inline TYPE __hdiv(TYPE a, TYPE b) { return a / b; }                                         \
  inline TYPE __hneg(TYPE a) { return -a; }                                                    \
  inline TYPE __habs(TYPE a) { return TYPE::from_bits(a.bits & 0x7fffu); }                     \
  inline TYPE __hfma(TYPE a, TYPE b, TYPE c) {                                                 \
    return TYPE(std::fma(double(float(a)), double(float(b)), double(float(c))));               \
  }                                                                                            \
  inline TYPE __hmax(TYPE a, TYPE b) { return TYPE(std::fmax(float(a), float(b))); }           \
  inline TYPE __hmin(TYPE a, TYPE b) { return TYPE(std::fmin(float(a), float(b))); }           \
  inline bool __hisnan(TYPE a) { return float(a) != float(a); }                                \
  inline bool __heq(TYPE a, TYPE b) { return a == b; }                                         \
  inline bool __hlt(TYPE a, TYPE b) { return a < b; }                                          \
  inline bool __hgt(TYPE a, TYPE b) { return a > b; }                                          \
  inline TYPE hexp(TYPE a) { return TYPE(std::exp(float(a))); }                                \
  inline TYPE hsqrt(TYPE a) { return TYPE(std::sqrt(float(a))); }                              \
  inline TYPE2 __hadd2(TYPE2 a, TYPE2 b) { return a + b; }                                     \
  inline TYPE2 __hsub2(TYPE2 a, TYPE2 b) { return a - b; }                                     \
  inline TYPE2 __hmul2(TYPE2 a, TYPE2 b) { return a * b; }                                     \
  inline TYPE2 __h2div(TYPE2 a, TYPE2 b) { return a / b; }                                     \
  inline TYPE2 __hneg2(TYPE2 a) { return -a; }                                                 \
  inline TYPE2 __habs2(TYPE2 a) { return TYPE2(__habs(a.x), __habs(a.y)); }                    \
  inline TYPE2 __hfma2(TYPE2 a, TYPE2 b, TYPE2 c) {                                            \
    return TYPE2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                \
  }                                                                                            \
  inline TYPE2 __hmax2(TYPE2 a, TYPE2 b) { return TYPE2(__hmax(a.x, b.x), __hmax(a.y, b.y)); } \
  inline TYPE2 __hmin2(TYPE2 a, TYPE2 b) { return TYPE2(__hmin(a.x, b.x), __hmin(a.y, b.y)); } \
  inline float __low2float(TYPE2 a) { return float(a.x); }                                     \
  inline float __high2float(TYPE2 a) { return float(a.y); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
COOKBOOK_SIMT_HALF_TYPE(__half, float_to_half_bits, half_bits_to_float)
COOKBOOK_SIMT_HALF_TYPE(__nv_bfloat16, float_to_bf16_bits, bf16_bits_to_float)
COOKBOOK_SIMT_HALF2_TYPE(__half2, __half)
COOKBOOK_SIMT_HALF2_TYPE(__nv_bfloat162, __nv_bfloat16)
#pragma GCC diagnostic pop
COOKBOOK_SIMT_HALF_INTRINSICS(__half, __half2)
COOKBOOK_SIMT_HALF_INTRINSICS(__nv_bfloat16, __nv_bfloat162)

#undef COOKBOOK_SIMT_HALF_TYPE
#undef COOKBOOK_SIMT_HALF2_TYPE
#undef COOKBOOK_SIMT_HALF_INTRINSICS

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

// ---- fp16 conversions ----
inline __half __float2half(float a) { return __half(a); }
inline __half __float2half_rn(float a) { return __half(a); }
inline __half __double2half(double a) { return __half(a); }
inline __half __int2half_rn(int a) { return __half(a); }
inline float __half2float(__half a) { return float(a); }
inline __half __ushort_as_half(unsigned short a) { return __half::from_bits(a); }
inline unsigned short __half_as_ushort(__half a) { return a.bits; }
inline __half2 make_half2(__half x, __half y) { return __half2(x, y); }
inline __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
inline __half2 __half2half2(__half a) { return __half2(a, a); }
inline __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
inline __half2 __floats2half2_rn(float x, float y) { return __half2(__half(x), __half(y)); }
inline __half2 __float22half2_rn(float2 a) { return __half2(__half(a.x), __half(a.y)); }
inline float2 __half22float2(__half2 a) { return make_float2(float(a.x), float(a.y)); }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }

// ---- bf16 conversions ----
inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __int2bfloat16_rn(int a) { return __nv_bfloat16(a); }
inline float __bfloat162float(__nv_bfloat16 a) { return float(a); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return __nv_bfloat16::from_bits(a); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.bits; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return __nv_bfloat162(x, y);
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return __nv_bfloat162(x, y);
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
inline __nv_bfloat162 __float2bfloat162_rn(float a) { return __bfloat162bfloat162(a); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __floats2bfloat162_rn(a.x, a.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 a) { return make_float2(float(a.x), float(a.y)); }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
