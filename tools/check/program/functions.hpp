// SPDX-License-Identifier: MIT
// The rare functions of CUDA C++. The others are in common/backend/simt/language, which every
// kernel of the book includes.
#pragma once

#include <cfenv>
#include <cmath>

#include "common/backend/simt/language/intrinsics.hpp"
#include "tools/check/program/packed_integers.hpp"

// ---- integers ----
/// The sum of two products of 16-bit parts of `a` with the lower bytes of `b`, and c.
inline int __dp2a_lo(int a, int b, int c) {
  return c + static_cast<int16_t>(a) * static_cast<int8_t>(b) +
         (a >> 16) * static_cast<int8_t>(b >> 8);
}
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffffu) * (b & 0xffu) + (a >> 16) * (b >> 8 & 0xffu);
}
inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
__forceinline__ int __hadd(int a, int b) {
  return static_cast<int>((static_cast<int64_t>(a) + b) >> 1);
}
__forceinline__ int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1);
}
__forceinline__ unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1);
}
__forceinline__ unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}
__forceinline__ unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
__forceinline__ unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
/// Where the n-th set bit of `mask` is, from `base` on: upwards, or downwards if n is negative.
inline unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> (base & 31) & 1u ? base : ~0u;
  const int step = n > 0 ? 1 : -1;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1u) && (n -= step) == 0) return static_cast<unsigned>(at);
  }
  return ~0u;
}
// They exist in device code without the std:: of the host's.
#define COOKBOOK_ORDERED(PREFIX, T)                                 \
  __forceinline__ T PREFIX##max(T a, T b) { return a < b ? b : a; } \
  __forceinline__ T PREFIX##min(T a, T b) { return b < a ? b : a; }
COOKBOOK_ORDERED(u, unsigned)
COOKBOOK_ORDERED(ll, long long)
COOKBOOK_ORDERED(ull, unsigned long long)
#undef COOKBOOK_ORDERED

// ---- conversions and directed rounding ----
#define COOKBOOK_TO_INTEGER(NAME, T, FROM, DIRECTION, FUNCTION) \
  __forceinline__ T NAME##_##DIRECTION(FROM a) { return cookbook::simt::saturated<T>(FUNCTION(a)); }
#define COOKBOOK_TO_INTEGER_NEAR(NAME, T, FROM)     \
  COOKBOOK_TO_INTEGER(NAME, T, FROM, rn, std::rint) \
  COOKBOOK_TO_INTEGER(NAME, T, FROM, rz, std::trunc)
#define COOKBOOK_TO_INTEGER_DIRECTED(NAME, T, FROM)  \
  COOKBOOK_TO_INTEGER(NAME, T, FROM, rd, std::floor) \
  COOKBOOK_TO_INTEGER(NAME, T, FROM, ru, std::ceil)
COOKBOOK_TO_INTEGER_DIRECTED(__float2ll, long long, float)
COOKBOOK_TO_INTEGER_NEAR(__float2ull, unsigned long long, float)
COOKBOOK_TO_INTEGER_DIRECTED(__float2ull, unsigned long long, float)
COOKBOOK_TO_INTEGER_DIRECTED(__double2int, int, double)
COOKBOOK_TO_INTEGER_NEAR(__double2uint, unsigned, double)
COOKBOOK_TO_INTEGER_DIRECTED(__double2uint, unsigned, double)
COOKBOOK_TO_INTEGER_NEAR(__double2ll, long long, double)
COOKBOOK_TO_INTEGER_DIRECTED(__double2ll, long long, double)
COOKBOOK_TO_INTEGER_NEAR(__double2ull, unsigned long long, double)
COOKBOOK_TO_INTEGER_DIRECTED(__double2ull, unsigned long long, double)
#undef COOKBOOK_TO_INTEGER_DIRECTED
#undef COOKBOOK_TO_INTEGER_NEAR
#undef COOKBOOK_TO_INTEGER
__forceinline__ double __ull2double_rn(unsigned long long a) { return static_cast<double>(a); }
__forceinline__ double __dsub_rn(double a, double b) { return a - b; }

namespace cookbook::simt {
/// What the compiler can neither compute in advance nor move.
template <class T>
__forceinline__ T opaque(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    asm volatile("" : "+x"(value) : : "memory");
  } else {
    asm volatile("" : "+r"(value) : : "memory");
  }
  return value;
}
/// operation(values...), rounded in another direction than to the nearest.
template <int kDirection, class F, class... T>
COOKBOOK_SIMT_UNTRACED inline auto rounded(F operation, T... values) {
  std::fesetround(kDirection);
  const auto result = opaque(operation(opaque(values)...));
  std::fesetround(FE_TONEAREST);
  return result;
}
}  // namespace cookbook::simt
#define COOKBOOK_ROUNDED_TO(NAME, DIRECTION, T, EXPRESSION, PARAMETERS, ...)             \
  inline T NAME PARAMETERS {                                                             \
    return cookbook::simt::rounded<DIRECTION>([] PARAMETERS -> T { return EXPRESSION; }, \
                                              __VA_ARGS__);                              \
  }
#define COOKBOOK_ROUNDED(NAME, ...)                        \
  COOKBOOK_ROUNDED_TO(NAME##_rd, FE_DOWNWARD, __VA_ARGS__) \
  COOKBOOK_ROUNDED_TO(NAME##_ru, FE_UPWARD, __VA_ARGS__)   \
  COOKBOOK_ROUNDED_TO(NAME##_rz, FE_TOWARDZERO, __VA_ARGS__)
#define COOKBOOK_ROUNDED_ARITHMETIC(PREFIX, FMA, T)         \
  COOKBOOK_ROUNDED(PREFIX##add, T, a + b, (T a, T b), a, b) \
  COOKBOOK_ROUNDED(PREFIX##sub, T, a - b, (T a, T b), a, b) \
  COOKBOOK_ROUNDED(PREFIX##mul, T, a* b, (T a, T b), a, b)  \
  COOKBOOK_ROUNDED(PREFIX##div, T, a / b, (T a, T b), a, b) \
  COOKBOOK_ROUNDED(PREFIX##rcp, T, 1 / a, (T a), a)         \
  COOKBOOK_ROUNDED(PREFIX##sqrt, T, std::sqrt(a), (T a), a) \
  COOKBOOK_ROUNDED(FMA, T, std::fma(a, b, c), (T a, T b, T c), a, b, c)
COOKBOOK_ROUNDED_ARITHMETIC(__f, __fmaf, float)
COOKBOOK_ROUNDED_ARITHMETIC(__d, __fma, double)
COOKBOOK_ROUNDED(__fmaf_ieee, float, std::fma(a, b, c), (float a, float b, float c), a, b, c)
inline float __fmaf_ieee_rn(float a, float b, float c) { return fmaf(a, b, c); }
#define COOKBOOK_ROUNDED_CONVERSION(NAME, T, FROM) \
  COOKBOOK_ROUNDED(NAME, T, static_cast<T>(a), (FROM a), a)
COOKBOOK_ROUNDED_CONVERSION(__int2float, float, int)
COOKBOOK_ROUNDED_CONVERSION(__uint2float, float, unsigned)
COOKBOOK_ROUNDED_CONVERSION(__ll2float, float, long long)
COOKBOOK_ROUNDED_CONVERSION(__ull2float, float, unsigned long long)
COOKBOOK_ROUNDED_CONVERSION(__double2float, float, double)
COOKBOOK_ROUNDED_CONVERSION(__ll2double, double, long long)
COOKBOOK_ROUNDED_CONVERSION(__ull2double, double, unsigned long long)
#undef COOKBOOK_ROUNDED_CONVERSION
#undef COOKBOOK_ROUNDED_ARITHMETIC
#undef COOKBOOK_ROUNDED
#undef COOKBOOK_ROUNDED_TO

// ---- mathematics ----
inline float norm4df(float x, float y, float z, float w) {
  return sqrtf(x * x + y * y + z * z + w * w);
}
inline float rnorm4df(float x, float y, float z, float w) { return 1.0f / norm4df(x, y, z, w); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
inline double norm4d(double x, double y, double z, double w) {
  return sqrt(x * x + y * y + z * z + w * w);
}
inline double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
inline double norm(int count, const double* values) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return sqrt(sum);
}
inline double rnorm(int count, const double* values) { return 1.0 / norm(count, values); }
inline float normf(int count, const float* values) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return sqrtf(sum);
}
inline float rnormf(int count, const float* values) { return 1.0f / normf(count, values); }
inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, fabs(x)); }
inline float cyl_bessel_i0f(float x) { return static_cast<float>(cyl_bessel_i0(x)); }
inline double cyl_bessel_i1(double x) { return copysign(std::cyl_bessel_i(1.0, fabs(x)), x); }
inline float cyl_bessel_i1f(float x) { return static_cast<float>(cyl_bessel_i1(x)); }
/// exp(x * x) * erfc(x); from 25 on, where a factor overflows, by its asymptotic series.
inline double erfcx(double x) {
  if (x < 25) return exp(x * x) * erfc(x);
  const double square = 0.5 / (x * x);
  return 0.5 * M_2_SQRTPI / x * (1 - square * (1 - 3 * square * (1 - 5 * square)));
}
inline float erfcxf(float x) { return static_cast<float>(erfcx(x)); }

// ---- 16-bit numbers ----
namespace cookbook::simt {
/// The whole number `a` as a T of any width, as saturated().
template <class T>
inline T narrowed(float a) {
  if constexpr (sizeof(T) >= 4) {
    return saturated<T>(a);
  } else {
    const int least = std::is_signed_v<T> ? -(1 << (8 * sizeof(T) - 1)) : 0;
    const int most = least + (1 << 8 * sizeof(T)) - 1, value = saturated<int>(a);
    return static_cast<T>(value < least ? least : value > most ? most : value);
  }
}
/// `value` as a T that is at most it (kDirection < 0), at least it (> 0) or nearer to 0 (0). A long
/// double holds every 64-bit number.
template <class T, int kDirection>
COOKBOOK_SIMT_UNTRACED inline T toward(long double value) {
  T result(static_cast<double>(value));
  const long double rounded = static_cast<float>(result);
  const bool down = kDirection < 0 || (kDirection == 0 && value > 0);
  if (value != value || rounded == value || (rounded < value) == down) return result;
  // The next number in that direction: of a negative one upwards it is the one with smaller bits.
  if (rounded == 0) return T::from_bits(down ? 0x8001 : 0x0001);
  result.bits = static_cast<uint16_t>(result.bits + ((rounded > 0) == down ? -1 : 1));
  return result;
}
}  // namespace cookbook::simt
#define COOKBOOK_HALF_OF_TWO(TYPE2, NAME) \
  inline TYPE2 h2##NAME(TYPE2 a) { return TYPE2(h##NAME(a.x), h##NAME(a.y)); }
#define COOKBOOK_HALF_BINARY(TYPE, TYPE2, NAME, NAME2, EXPRESSION) \
  inline TYPE NAME(TYPE a, TYPE b) { return TYPE(EXPRESSION); }    \
  inline TYPE2 NAME2(TYPE2 a, TYPE2 b) { return TYPE2(NAME(a.x, b.x), NAME(a.y, b.y)); }
#define COOKBOOK_HALF_COMPARISON(TYPE, TYPE2, NAME)                                         \
  inline TYPE2 __h##NAME##2(TYPE2 a, TYPE2 b) {                                             \
    return TYPE2(TYPE(__h##NAME(a.x, b.x) ? 1.0f : 0.0f),                                   \
                 TYPE(__h##NAME(a.y, b.y) ? 1.0f : 0.0f));                                  \
  }                                                                                         \
  inline unsigned __h##NAME##2_mask(TYPE2 a, TYPE2 b) {                                     \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0u) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0u); \
  }                                                                                         \
  inline bool __hb##NAME##2(TYPE2 a, TYPE2 b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }
// With a `u` it holds of a NaN, too.
#define COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, NAME)      \
  inline bool __h##NAME##u(TYPE a, TYPE b) {              \
    return __hisnan(a) || __hisnan(b) || __h##NAME(a, b); \
  }                                                       \
  COOKBOOK_HALF_COMPARISON(TYPE, TYPE2, NAME)             \
  COOKBOOK_HALF_COMPARISON(TYPE, TYPE2, NAME##u)
#define COOKBOOK_HALF_INTEGER_NEAR(TYPE, NAME, T, INTEGER) \
  inline T __##NAME##2##INTEGER##_rn(TYPE a) {             \
    return cookbook::simt::narrowed<T>(rintf(float(a)));   \
  }                                                        \
  inline T __##NAME##2##INTEGER##_rz(TYPE a) {             \
    return cookbook::simt::narrowed<T>(truncf(float(a)));  \
  }
#define COOKBOOK_HALF_INTEGER_DIRECTED(TYPE, NAME, T, INTEGER)                               \
  inline TYPE __##INTEGER##2##NAME##_rd(T a) { return cookbook::simt::toward<TYPE, -1>(a); } \
  inline TYPE __##INTEGER##2##NAME##_ru(T a) { return cookbook::simt::toward<TYPE, 1>(a); }  \
  inline TYPE __##INTEGER##2##NAME##_rz(T a) { return cookbook::simt::toward<TYPE, 0>(a); }  \
  inline T __##NAME##2##INTEGER##_rd(TYPE a) {                                               \
    return cookbook::simt::narrowed<T>(floorf(float(a)));                                    \
  }                                                                                          \
  inline T __##NAME##2##INTEGER##_ru(TYPE a) {                                               \
    return cookbook::simt::narrowed<T>(ceilf(float(a)));                                     \
  }
#define COOKBOOK_HALF_INTEGER(TYPE, NAME, T, INTEGER) \
  COOKBOOK_HALF_INTEGER_NEAR(TYPE, NAME, T, INTEGER)  \
  COOKBOOK_HALF_INTEGER_DIRECTED(TYPE, NAME, T, INTEGER)
#define COOKBOOK_HALF_MORE(TYPE, TYPE2, NAME)                                                 \
  inline TYPE2 __hisnan2(TYPE2 a) { return TYPE2(TYPE(__hisnan(a.x)), TYPE(__hisnan(a.y))); } \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, eq)                                                  \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, ne)                                                  \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, lt)                                                  \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, le)                                                  \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, gt)                                                  \
  COOKBOOK_HALF_COMPARISONS(TYPE, TYPE2, ge)                                                  \
  COOKBOOK_HALF_OF_TWO(TYPE2, exp10)                                                          \
  COOKBOOK_HALF_OF_TWO(TYPE2, log2)                                                           \
  COOKBOOK_HALF_OF_TWO(TYPE2, log10)                                                          \
  COOKBOOK_HALF_OF_TWO(TYPE2, sin)                                                            \
  COOKBOOK_HALF_OF_TWO(TYPE2, cos)                                                            \
  inline TYPE htanh(TYPE a) { return TYPE(std::tanh(float(a))); }                             \
  COOKBOOK_HALF_OF_TWO(TYPE2, tanh)                                                           \
  inline TYPE htanh_approx(TYPE a) { return TYPE(std::tanh(float(a))); }                      \
  COOKBOOK_HALF_OF_TWO(TYPE2, tanh_approx)                                                    \
  COOKBOOK_HALF_OF_TWO(TYPE2, floor)                                                          \
  COOKBOOK_HALF_OF_TWO(TYPE2, ceil)                                                           \
  COOKBOOK_HALF_OF_TWO(TYPE2, trunc)                                                          \
  COOKBOOK_HALF_OF_TWO(TYPE2, rint)                                                           \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hadd_rn, __hadd2_rn, a + b)                             \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hsub_rn, __hsub2_rn, a - b)                             \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hmul_rn, __hmul2_rn, a* b)                              \
  inline TYPE2 __hadd2_sat(TYPE2 a, TYPE2 b) {                                                \
    return TYPE2(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y));                                 \
  }                                                                                           \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hsub_sat, __hsub2_sat, __saturatef(float(a - b)))       \
  inline TYPE2 __hmul2_sat(TYPE2 a, TYPE2 b) {                                                \
    return TYPE2(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y));                                 \
  }                                                                                           \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hmax_nan, __hmax2_nan,                                  \
                       __hisnan(a) || __hisnan(b) ? a + b : __hmax(a, b))                     \
  COOKBOOK_HALF_BINARY(TYPE, TYPE2, __hmin_nan, __hmin2_nan,                                  \
                       __hisnan(a) || __hisnan(b) ? a + b : __hmin(a, b))                     \
  inline TYPE2 __hfma2_sat(TYPE2 a, TYPE2 b, TYPE2 c) {                                       \
    return TYPE2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                       \
  }                                                                                           \
  inline TYPE2 __hfma2_relu(TYPE2 a, TYPE2 b, TYPE2 c) {                                      \
    return TYPE2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                     \
  }                                                                                           \
  /* a * b + c of complex numbers */                                                          \
  inline TYPE2 __hcmadd(TYPE2 a, TYPE2 b, TYPE2 c) {                                          \
    return TYPE2(__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)),                                    \
                 __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));                                    \
  }                                                                                           \
  inline TYPE __float2##NAME##_rd(float a) { return cookbook::simt::toward<TYPE, -1>(a); }    \
  inline TYPE __float2##NAME##_ru(float a) { return cookbook::simt::toward<TYPE, 1>(a); }     \
  inline TYPE __float2##NAME##_rz(float a) { return cookbook::simt::toward<TYPE, 0>(a); }     \
  COOKBOOK_HALF_INTEGER(TYPE, NAME, short, short)                                             \
  COOKBOOK_HALF_INTEGER(TYPE, NAME, unsigned short, ushort)                                   \
  COOKBOOK_HALF_INTEGER_DIRECTED(TYPE, NAME, int, int)                                        \
  COOKBOOK_HALF_INTEGER(TYPE, NAME, unsigned, uint)                                           \
  COOKBOOK_HALF_INTEGER(TYPE, NAME, long long, ll)                                            \
  COOKBOOK_HALF_INTEGER(TYPE, NAME, unsigned long long, ull)                                  \
  inline TYPE __ushort2##NAME##_rn(unsigned short a) { return TYPE(static_cast<int>(a)); }    \
  inline TYPE __ll2##NAME##_rn(long long a) { return TYPE(a); }                               \
  inline TYPE __ull2##NAME##_rn(unsigned long long a) { return TYPE(a); }                     \
  inline signed char __##NAME##2char_rz(TYPE a) {                                             \
    return cookbook::simt::narrowed<signed char>(truncf(float(a)));                           \
  }                                                                                           \
  inline unsigned char __##NAME##2uchar_rz(TYPE a) {                                          \
    return cookbook::simt::narrowed<unsigned char>(truncf(float(a)));                         \
  }
COOKBOOK_HALF_MORE(__half, __half2, half)
COOKBOOK_HALF_MORE(__nv_bfloat16, __nv_bfloat162, bfloat16)
#undef COOKBOOK_HALF_MORE
#undef COOKBOOK_HALF_INTEGER
#undef COOKBOOK_HALF_INTEGER_DIRECTED
#undef COOKBOOK_HALF_INTEGER_NEAR
#undef COOKBOOK_HALF_COMPARISONS
#undef COOKBOOK_HALF_COMPARISON
#undef COOKBOOK_HALF_BINARY
#undef COOKBOOK_HALF_OF_TWO
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __nv_bfloat162(a.x, b.x);
}
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __nv_bfloat162(a.y, b.y);
}
inline short __bfloat16_as_short(__nv_bfloat16 a) { return static_cast<short>(a.bits); }
inline __nv_bfloat16 __short_as_bfloat16(short a) {
  return __nv_bfloat16::from_bits(static_cast<unsigned short>(a));
}
inline __nv_bfloat16 __short2bfloat16_rn(short a) { return __nv_bfloat16(static_cast<int>(a)); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned a) { return __nv_bfloat16(a); }
inline int __bfloat162int_rn(__nv_bfloat16 a) { return __float2int_rn(float(a)); }
inline int __bfloat162int_rz(__nv_bfloat16 a) { return __float2int_rz(float(a)); }
