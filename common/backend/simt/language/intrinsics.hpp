// SPDX-License-Identifier: MIT
// All functions of CUDA C++ that there are here: those that the kernels of the book use, and those
// that only other programs do.
#pragma once

#include <cmath>

#include "common/backend/simt/language/language.hpp"

// ---- atomics ----
__forceinline__ long long atomicMax(long long* address, long long value) {
  return cookbook::simt::atomic_max(address, value);
}
__forceinline__ long long atomicMin(long long* address, long long value) {
  return cookbook::simt::atomic_min(address, value);
}
__forceinline__ long long atomicExch(long long* address, long long value) {
  return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}
__forceinline__ unsigned short atomicCAS(unsigned short* address, unsigned short expected,
                                         unsigned short value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
/// Four atomics, as the hardware's: the sum as a whole is not atomic.
__forceinline__ float4 atomicAdd(float4* address, float4 value) {
  const float x = atomicAdd(&address->x, value.x), y = atomicAdd(&address->y, value.y);
  const float z = atomicAdd(&address->z, value.z), w = atomicAdd(&address->w, value.w);
  return make_float4(x, y, z, w);
}
// The scope of a block matters to the tracer only; a wider one makes no difference to the model.
#define COOKBOOK_SIMT_SCOPED(NAME)                              \
  template <class T, class... V>                                \
  __forceinline__ auto NAME##_block(T* address, V... values) {  \
    cookbook::simt::set_block_scope(true);                      \
    const auto old = NAME(address, static_cast<T>(values)...);  \
    cookbook::simt::set_block_scope(false);                     \
    return old;                                                 \
  }                                                             \
  template <class T, class... V>                                \
  __forceinline__ auto NAME##_system(T* address, V... values) { \
    return NAME(address, static_cast<T>(values)...);            \
  }
COOKBOOK_SIMT_SCOPED(atomicAdd)
COOKBOOK_SIMT_SCOPED(atomicSub)
COOKBOOK_SIMT_SCOPED(atomicExch)
COOKBOOK_SIMT_SCOPED(atomicCAS)
COOKBOOK_SIMT_SCOPED(atomicMin)
COOKBOOK_SIMT_SCOPED(atomicMax)
COOKBOOK_SIMT_SCOPED(atomicAnd)
COOKBOOK_SIMT_SCOPED(atomicOr)
COOKBOOK_SIMT_SCOPED(atomicXor)
COOKBOOK_SIMT_SCOPED(atomicInc)
COOKBOOK_SIMT_SCOPED(atomicDec)
#undef COOKBOOK_SIMT_SCOPED

// ---- integers ----
/// The sum of four products of bytes, and c.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  }
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xffu) * (b >> (8 * i) & 0xffu);
  return c;
}
__forceinline__ int __dp4a(char4 a, char4 b, int c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
__forceinline__ unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
__forceinline__ int __mul24(int a, int b) {
  const auto low = [](int v) { return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<int64_t>(low(a)) * low(b));
}
__forceinline__ unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
__forceinline__ long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
__forceinline__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
__forceinline__ int __vimax3_s32(int a, int b, int c) {
  return a > b ? (a > c ? a : c) : b > c ? b : c;
}
__forceinline__ int __vimin3_s32(int a, int b, int c) {
  return a < b ? (a < c ? a : c) : b < c ? b : c;
}
__forceinline__ unsigned __sad(int a, int b, unsigned c) {
  const int64_t distance = static_cast<int64_t>(a) - b;
  return c + static_cast<unsigned>(distance < 0 ? -distance : distance);
}
__forceinline__ unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return c + (a < b ? b - a : a - b);
}

// ---- conversions ----
__forceinline__ unsigned __float2uint_rz(float a) {
  return cookbook::simt::saturated<unsigned>(truncf(a));
}
__forceinline__ unsigned __float2uint_rd(float a) {
  return cookbook::simt::saturated<unsigned>(floorf(a));
}
__forceinline__ unsigned __float2uint_ru(float a) {
  return cookbook::simt::saturated<unsigned>(ceilf(a));
}
__forceinline__ long long __float2ll_rn(float a) {
  return cookbook::simt::saturated<long long>(rintf(a));
}
__forceinline__ long long __float2ll_rz(float a) {
  return cookbook::simt::saturated<long long>(truncf(a));
}
__forceinline__ float __ll2float_rn(long long a) { return static_cast<float>(a); }
__forceinline__ float __ull2float_rn(unsigned long long a) { return static_cast<float>(a); }
__forceinline__ int __double2int_rn(double a) { return cookbook::simt::saturated<int>(rint(a)); }
__forceinline__ int __double2int_rz(double a) { return cookbook::simt::saturated<int>(trunc(a)); }
__forceinline__ float __double2float_rn(double a) { return static_cast<float>(a); }
__forceinline__ double __int2double_rn(int a) { return a; }
__forceinline__ double __uint2double_rn(unsigned a) { return a; }
__forceinline__ double __ll2double_rn(long long a) { return static_cast<double>(a); }
__forceinline__ int __double2hiint(double a) {
  return static_cast<int>(cookbook::simt::reinterpret<uint64_t>(a) >> 32);
}
__forceinline__ int __double2loint(double a) {
  return static_cast<int>(cookbook::simt::reinterpret<uint64_t>(a));
}
__forceinline__ double __hiloint2double(int high, int low) {
  return cookbook::simt::reinterpret<double>(
      static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
__forceinline__ double __dadd_rn(double a, double b) { return a + b; }
__forceinline__ double __dmul_rn(double a, double b) { return a * b; }
__forceinline__ double __ddiv_rn(double a, double b) { return a / b; }
__forceinline__ double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
__forceinline__ double __drcp_rn(double a) { return 1.0 / a; }
__forceinline__ double __dsqrt_rn(double a) { return sqrt(a); }

// ---- mathematics ----
namespace cookbook::simt {
/// The x with normal distribution function p: Acklam's rational start, and two steps of Halley.
inline double normal_quantile(double p) {
  if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -INFINITY : p == 1.0 ? INFINITY : NAN;
  double x = p < 0.5 ? -sqrt(-2.0 * log(p)) : sqrt(-2.0 * log1p(-p));
  if (p > 0.02 && p < 0.98) x = (p - 0.5) * 2.50662827463;
  for (int i = 0; i < 60; ++i) {
    const double error = 0.5 * erfc(-x * M_SQRT1_2) - p;
    const double step = error * 2.50662827463100050242 * exp(0.5 * x * x);
    const double next = x - step / (1.0 + 0.5 * x * step);
    if (next == x || !std::isfinite(next)) break;
    x = next;
  }
  return x;
}
}  // namespace cookbook::simt
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline double normcdfinv(double p) { return cookbook::simt::normal_quantile(p); }
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
inline double erfinv(double y) { return normcdfinv(0.5 * (y + 1.0)) * M_SQRT1_2; }
inline float erfinvf(float y) { return static_cast<float>(erfinv(y)); }
inline double erfcinv(double y) { return -normcdfinv(0.5 * y) * M_SQRT1_2; }
inline float erfcinvf(float y) { return static_cast<float>(erfcinv(y)); }
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * fmod(x, 2.0))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * fmod(x, 2.0))); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }

namespace cookbook::simt {
__forceinline__ void fast_sincos(float a, float* sine, float* cosine) {
  *sine = sinf(a);
  *cosine = cosf(a);
}
}  // namespace cookbook::simt
#define __sincosf(...) cookbook::simt::fast_sincos(__VA_ARGS__)
#define __builtin_assume(...) ((void)0)
#define __assume(...) ((void)0)

// ---- 16-bit numbers ----
#define COOKBOOK_SIMT_HALF_MORE(TYPE, TYPE2)                                                    \
  inline bool __hne(TYPE a, TYPE b) { return a != b; }                                          \
  inline bool __hle(TYPE a, TYPE b) { return a <= b; }                                          \
  inline bool __hge(TYPE a, TYPE b) { return a >= b; }                                          \
  inline int __hisinf(TYPE a) { return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }    \
  inline TYPE hexp2(TYPE a) { return TYPE(std::exp2(float(a))); }                               \
  inline TYPE hexp10(TYPE a) { return TYPE(std::pow(10.0f, float(a))); }                        \
  inline TYPE hlog(TYPE a) { return TYPE(std::log(float(a))); }                                 \
  inline TYPE hlog2(TYPE a) { return TYPE(std::log2(float(a))); }                               \
  inline TYPE hlog10(TYPE a) { return TYPE(std::log10(float(a))); }                             \
  inline TYPE hsin(TYPE a) { return TYPE(std::sin(float(a))); }                                 \
  inline TYPE hcos(TYPE a) { return TYPE(std::cos(float(a))); }                                 \
  inline TYPE hrcp(TYPE a) { return TYPE(1.0f / float(a)); }                                    \
  inline TYPE hrsqrt(TYPE a) { return TYPE(1.0f / std::sqrt(float(a))); }                       \
  inline TYPE hfloor(TYPE a) { return TYPE(std::floor(float(a))); }                             \
  inline TYPE hceil(TYPE a) { return TYPE(std::ceil(float(a))); }                               \
  inline TYPE htrunc(TYPE a) { return TYPE(std::trunc(float(a))); }                             \
  inline TYPE hrint(TYPE a) { return TYPE(std::rint(float(a))); }                               \
  inline TYPE2 h2exp(TYPE2 a) { return TYPE2(hexp(a.x), hexp(a.y)); }                           \
  inline TYPE2 h2exp2(TYPE2 a) { return TYPE2(hexp2(a.x), hexp2(a.y)); }                        \
  inline TYPE2 h2log(TYPE2 a) { return TYPE2(hlog(a.x), hlog(a.y)); }                           \
  inline TYPE2 h2sqrt(TYPE2 a) { return TYPE2(hsqrt(a.x), hsqrt(a.y)); }                        \
  inline TYPE2 h2rsqrt(TYPE2 a) { return TYPE2(hrsqrt(a.x), hrsqrt(a.y)); }                     \
  inline TYPE2 h2rcp(TYPE2 a) { return TYPE2(hrcp(a.x), hrcp(a.y)); }                           \
  inline TYPE __hadd_sat(TYPE a, TYPE b) { return TYPE(__saturatef(float(a + b))); }            \
  inline TYPE __hmul_sat(TYPE a, TYPE b) { return TYPE(__saturatef(float(a * b))); }            \
  inline TYPE __hfma_sat(TYPE a, TYPE b, TYPE c) { return TYPE(__saturatef(__hfma(a, b, c))); } \
  inline TYPE __hfma_relu(TYPE a, TYPE b, TYPE c) {                                             \
    const TYPE sum = __hfma(a, b, c);                                                           \
    return float(sum) < 0 ? TYPE(0.0f) : sum; /* NaN stays */                                   \
  }
COOKBOOK_SIMT_HALF_MORE(__half, __half2)
COOKBOOK_SIMT_HALF_MORE(__nv_bfloat16, __nv_bfloat162)
#undef COOKBOOK_SIMT_HALF_MORE
inline __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
inline __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
inline __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
inline __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
inline __half2 __lowhigh2highlow(__half2 a) { return __half2(a.y, a.x); }
inline int __half2int_rn(__half a) { return __float2int_rn(float(a)); }
inline int __half2int_rz(__half a) { return __float2int_rz(float(a)); }
inline __half __short2half_rn(short a) { return __half(static_cast<int>(a)); }
inline __half __uint2half_rn(unsigned a) { return __half(a); }
inline short __half_as_short(__half a) { return static_cast<short>(a.bits); }
inline __half __short_as_half(short a) { return __half::from_bits(static_cast<unsigned short>(a)); }
