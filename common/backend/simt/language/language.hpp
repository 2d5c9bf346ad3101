// SPDX-License-Identifier: MIT
// The CUDA C++ language surface for g++: what a kernel can use if it includes only
// common/device/cuda.cuh. Thin inline wrappers only. What accesses the runtime's state is out of
// line, in sources that the traced build does not instrument.
#pragma once

#include <math.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#if !defined(COOKBOOK_FEW_HEADERS)
#include <memory>  // before __noinline__ is a macro: libstdc++ has it as an attribute's name
#include <string>
#endif
#include <type_traits>

#include "common/backend/simt/language/half_types.hpp"
#include "common/backend/simt/language/vector_types.hpp"

#define __global__
#define __device__
#define __host__
#if defined(COOKBOOK_TRACED)
// A red zone before each variable, so that an access beyond another one hits no variable. All are
// aligned to 128 bytes, because an `alignas` in front would apply to the red zone.
#define __shared__                                                  \
  static thread_local char COOKBOOK_SIMT_RED_ZONE(__COUNTER__)[256] \
      __attribute__((used, aligned(128)));                          \
  static thread_local __attribute__((aligned(128)))
#define COOKBOOK_SIMT_RED_ZONE(number) COOKBOOK_SIMT_RED_ZONE_NAME(number)
#define COOKBOOK_SIMT_RED_ZONE_NAME(number) cookbook_red_zone_##number
#else
#define __shared__ static thread_local
#endif
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// Constant for the fiber that reads them, so g++ may keep them in registers across calls and
// -fsanitize=thread does not take them for memory traffic.
extern __thread const uint3 threadIdx;
extern __thread const uint3 blockIdx;
extern __thread const uint3 blockDim;
extern __thread const uint3 gridDim;
inline constexpr int warpSize = 32;

namespace cookbook::simt {

enum class ReduceOp {
  add,
  min_signed,
  min_unsigned,
  max_signed,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor
};

void sync_threads();
int sync_threads_count(bool predicate);
bool sync_threads_and(bool predicate);
bool sync_threads_or(bool predicate);
void sync_warp(uint32_t mask);
// `source`: lane of the warp whose value is returned. All ones if that lane does not take part.
uint64_t shuffle(uint32_t mask, uint64_t value, uint32_t source);
struct Vote {
  uint32_t ballot, participants;
};
Vote vote(uint32_t mask, bool predicate);
uint32_t match_any(uint32_t mask, uint64_t value);
uint32_t match_all(uint32_t mask, uint64_t value, int* all_equal);
uint32_t reduce(uint32_t mask, uint32_t value, ReduceOp op);
uint32_t active_mask();
uint32_t lane_id();
void* dynamic_shared_memory();
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address);
void memory_fence();
void memory_fence_block();
void set_block_scope(bool on);  // of the calling thread's atomics
void nap();
[[noreturn]] void trap();
long long cycle_counter();
unsigned long long nanosecond_counter();

// Atomics that g++ has no builtin for. `T`: see the instantiations in atomics.cpp.
template <class T>
T atomic_add(T* address, T value);
template <class T>
T atomic_min(T* address, T value);
template <class T>
T atomic_max(T* address, T value);
uint32_t atomic_inc(uint32_t* address, uint32_t limit);
uint32_t atomic_dec(uint32_t* address, uint32_t limit);

template <class T>
__forceinline__ uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "at most 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  return bits;
}

template <class T>
__forceinline__ T from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

template <class To, class From>
__forceinline__ To reinterpret(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  return __builtin_bit_cast(To, value);
}

}  // namespace cookbook::simt

// ---- barriers and fences ----
__forceinline__ void __syncthreads() { cookbook::simt::sync_threads(); }
__forceinline__ int __syncthreads_count(int predicate) {
  return cookbook::simt::sync_threads_count(predicate != 0);
}
__forceinline__ int __syncthreads_and(int predicate) {
  return cookbook::simt::sync_threads_and(predicate != 0);
}
__forceinline__ int __syncthreads_or(int predicate) {
  return cookbook::simt::sync_threads_or(predicate != 0);
}
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) { cookbook::simt::sync_warp(mask); }
__forceinline__ void __threadfence() { cookbook::simt::memory_fence(); }
__forceinline__ void __threadfence_block() { cookbook::simt::memory_fence_block(); }
__forceinline__ void __threadfence_system() { cookbook::simt::memory_fence(); }

// ---- shuffles: `width` splits the warp into segments of that many lanes ----
template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const uint32_t segment = cookbook::simt::lane_id() & ~static_cast<uint32_t>(width - 1);
  const uint32_t lane = segment | (static_cast<uint32_t>(source) & (width - 1));
  return cookbook::simt::from_bits<T>(
      cookbook::simt::shuffle(mask, cookbook::simt::to_bits(value), lane));
}
template <class T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const uint32_t lane = cookbook::simt::lane_id();
  const uint32_t source = (lane & (width - 1)) >= delta ? lane - delta : lane;
  return cookbook::simt::from_bits<T>(
      cookbook::simt::shuffle(mask, cookbook::simt::to_bits(value), source));
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const uint32_t lane = cookbook::simt::lane_id();
  const uint32_t source =
      (lane & (width - 1)) + delta < static_cast<uint32_t>(width) ? lane + delta : lane;
  return cookbook::simt::from_bits<T>(
      cookbook::simt::shuffle(mask, cookbook::simt::to_bits(value), source));
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const uint32_t lane = cookbook::simt::lane_id();
  const uint32_t last = lane | static_cast<uint32_t>(width - 1);  // of the own segment
  const uint32_t partner = lane ^ static_cast<uint32_t>(lane_mask);
  return cookbook::simt::from_bits<T>(cookbook::simt::shuffle(mask, cookbook::simt::to_bits(value),
                                                              partner <= last ? partner : lane));
}

// ---- votes, matches, reductions ----
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  return cookbook::simt::vote(mask, predicate != 0).ballot;
}
__forceinline__ int __any_sync(unsigned mask, int predicate) {
  return cookbook::simt::vote(mask, predicate != 0).ballot != 0;
}
__forceinline__ int __all_sync(unsigned mask, int predicate) {
  const cookbook::simt::Vote vote = cookbook::simt::vote(mask, predicate != 0);
  return vote.ballot == vote.participants;
}
__forceinline__ unsigned __activemask() { return cookbook::simt::active_mask(); }
template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
  return cookbook::simt::match_any(mask, cookbook::simt::to_bits(value));
}
template <class T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all_equal) {
  int equal = 0;  // the store to `all_equal` is the kernel's own
  const unsigned lanes = cookbook::simt::match_all(mask, cookbook::simt::to_bits(value), &equal);
  *all_equal = equal;
  return lanes;
}
template <class T>
__forceinline__ T __reduce_add_sync(unsigned mask, T value) {
  return static_cast<T>(
      cookbook::simt::reduce(mask, static_cast<uint32_t>(value), cookbook::simt::ReduceOp::add));
}
template <class T>
__forceinline__ T __reduce_min_sync(unsigned mask, T value) {
  return static_cast<T>(cookbook::simt::reduce(mask, static_cast<uint32_t>(value),
                                               std::is_signed_v<T>
                                                   ? cookbook::simt::ReduceOp::min_signed
                                                   : cookbook::simt::ReduceOp::min_unsigned));
}
template <class T>
__forceinline__ T __reduce_max_sync(unsigned mask, T value) {
  return static_cast<T>(cookbook::simt::reduce(mask, static_cast<uint32_t>(value),
                                               std::is_signed_v<T>
                                                   ? cookbook::simt::ReduceOp::max_signed
                                                   : cookbook::simt::ReduceOp::max_unsigned));
}
__forceinline__ unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return cookbook::simt::reduce(mask, value, cookbook::simt::ReduceOp::bit_and);
}
__forceinline__ unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return cookbook::simt::reduce(mask, value, cookbook::simt::ReduceOp::bit_or);
}
__forceinline__ unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return cookbook::simt::reduce(mask, value, cookbook::simt::ReduceOp::bit_xor);
}

// ---- atomics ----
// Integers use g++'s builtins, which the traced build instruments; the runtime performs the others.
#define COOKBOOK_SIMT_INTEGER_ATOMICS(T)                                            \
  __forceinline__ T atomicAdd(T* address, T value) {                                \
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);                    \
  }                                                                                 \
  __forceinline__ T atomicExch(T* address, T value) {                               \
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);                   \
  }                                                                                 \
  __forceinline__ T atomicCAS(T* address, T expected, T value) {                    \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, \
                                __ATOMIC_RELAXED);                                  \
    return expected;                                                                \
  }                                                                                 \
  __forceinline__ T atomicAnd(T* address, T value) {                                \
    return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);                    \
  }                                                                                 \
  __forceinline__ T atomicOr(T* address, T value) {                                 \
    return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);                     \
  }                                                                                 \
  __forceinline__ T atomicXor(T* address, T value) {                                \
    return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);                    \
  }                                                                                 \
  __forceinline__ T atomicMin(T* address, T value) {                                \
    return cookbook::simt::atomic_min(address, value);                              \
  }                                                                                 \
  __forceinline__ T atomicMax(T* address, T value) {                                \
    return cookbook::simt::atomic_max(address, value);                              \
  }
COOKBOOK_SIMT_INTEGER_ATOMICS(int)
COOKBOOK_SIMT_INTEGER_ATOMICS(unsigned)
COOKBOOK_SIMT_INTEGER_ATOMICS(unsigned long long)
#undef COOKBOOK_SIMT_INTEGER_ATOMICS
__forceinline__ int atomicSub(int* address, int value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
__forceinline__ unsigned atomicSub(unsigned* address, unsigned value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
__forceinline__ unsigned atomicInc(unsigned* address, unsigned limit) {
  return cookbook::simt::atomic_inc(address, limit);
}
__forceinline__ unsigned atomicDec(unsigned* address, unsigned limit) {
  return cookbook::simt::atomic_dec(address, limit);
}
__forceinline__ float atomicExch(float* address, float value) {
  return cookbook::simt::reinterpret<float>(
      __atomic_exchange_n(reinterpret_cast<unsigned*>(address),
                          cookbook::simt::reinterpret<unsigned>(value), __ATOMIC_RELAXED));
}
__forceinline__ float atomicAdd(float* address, float value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ double atomicAdd(double* address, double value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ __half atomicAdd(__half* address, __half value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ __half2 atomicAdd(__half2* address, __half2 value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ __nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return cookbook::simt::atomic_add(address, value);
}
__forceinline__ float2 atomicAdd(float2* address, float2 value) {
  const float x = cookbook::simt::atomic_add(&address->x, value.x);
  const float y = cookbook::simt::atomic_add(&address->y, value.y);
  return make_float2(x, y);
}

// ---- loads and stores with cache hints ----
#define COOKBOOK_SIMT_CACHE_LOAD(NAME)       \
  template <class T>                         \
  __forceinline__ T NAME(const T* address) { \
    return *address;                         \
  }
COOKBOOK_SIMT_CACHE_LOAD(__ldg)
COOKBOOK_SIMT_CACHE_LOAD(__ldca)
COOKBOOK_SIMT_CACHE_LOAD(__ldcg)
COOKBOOK_SIMT_CACHE_LOAD(__ldcs)
COOKBOOK_SIMT_CACHE_LOAD(__ldlu)
COOKBOOK_SIMT_CACHE_LOAD(__ldcv)
#undef COOKBOOK_SIMT_CACHE_LOAD
#define COOKBOOK_SIMT_CACHE_STORE(NAME)                                  \
  template <class T>                                                     \
  __forceinline__ void NAME(T* address, std::type_identity_t<T> value) { \
    *address = value;                                                    \
  }
COOKBOOK_SIMT_CACHE_STORE(__stcg)
COOKBOOK_SIMT_CACHE_STORE(__stcs)
COOKBOOK_SIMT_CACHE_STORE(__stwb)
COOKBOOK_SIMT_CACHE_STORE(__stwt)
#undef COOKBOOK_SIMT_CACHE_STORE

// ---- addresses, time, control ----
__forceinline__ size_t __cvta_generic_to_shared(const void* pointer) {
  return cookbook::simt::shared_address(pointer);
}
__forceinline__ void* __cvta_shared_to_generic(size_t address) {
  return cookbook::simt::shared_pointer(static_cast<uint32_t>(address));
}
__forceinline__ size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<size_t>(pointer);
}
__forceinline__ void __nanosleep(unsigned) { cookbook::simt::nap(); }
__forceinline__ void __trap() { cookbook::simt::trap(); }
__forceinline__ long long clock64() { return cookbook::simt::cycle_counter(); }

// ---- reinterpretation and integer intrinsics ----
__forceinline__ int __float_as_int(float a) { return cookbook::simt::reinterpret<int>(a); }
__forceinline__ unsigned __float_as_uint(float a) {
  return cookbook::simt::reinterpret<unsigned>(a);
}
__forceinline__ float __int_as_float(int a) { return cookbook::simt::reinterpret<float>(a); }
__forceinline__ float __uint_as_float(unsigned a) { return cookbook::simt::reinterpret<float>(a); }
__forceinline__ long long __double_as_longlong(double a) {
  return cookbook::simt::reinterpret<long long>(a);
}
__forceinline__ double __longlong_as_double(long long a) {
  return cookbook::simt::reinterpret<double>(a);
}
__forceinline__ int __popc(unsigned a) { return __builtin_popcount(a); }
__forceinline__ int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
__forceinline__ int __clz(int a) { return a ? __builtin_clz(static_cast<unsigned>(a)) : 32; }
__forceinline__ int __clzll(long long a) { return a ? __builtin_clzll(a) : 64; }
__forceinline__ int __ffs(int a) { return __builtin_ffs(a); }
__forceinline__ int __ffsll(long long a) { return __builtin_ffsll(a); }
inline unsigned __brev(unsigned a) {
  a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
  a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
  a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(a);
}
inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}
__forceinline__ int __mulhi(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) * b) >> 32);
}
__forceinline__ unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
__forceinline__ unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
__forceinline__ unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned select = selector >> (4 * i);
    unsigned byte = static_cast<unsigned>(both >> (8 * (select & 7))) & 0xffu;
    if (select & 8) byte = (byte & 0x80u) ? 0xffu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}

// ---- arithmetic ----
// The approximate functions of the GPU are exact here.
__forceinline__ float __fdividef(float a, float b) { return a / b; }
__forceinline__ float fdividef(float a, float b) { return a / b; }
__forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
__forceinline__ float __fadd_rn(float a, float b) { return a + b; }
__forceinline__ float __fsub_rn(float a, float b) { return a - b; }
__forceinline__ float __fmul_rn(float a, float b) { return a * b; }
__forceinline__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__forceinline__ float __frcp_rn(float a) { return 1.0f / a; }
__forceinline__ float __fsqrt_rn(float a) { return sqrtf(a); }
__forceinline__ float __frsqrt_rn(float a) { return 1.0f / sqrtf(a); }
__forceinline__ float rsqrtf(float a) { return 1.0f / sqrtf(a); }
__forceinline__ double rsqrt(double a) { return 1.0 / sqrt(a); }
__forceinline__ float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }
namespace cookbook::simt {
/// The whole number `a` as a T: the nearest one that there is. NaN gives 0, or where `a` or T has
/// 64 bits only the highest bit (PTX ISA, "cvt"). C++ leaves all of these undefined.
template <class T, class Float>
COOKBOOK_SIMT_UNTRACED constexpr T saturated(Float a) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "whole numbers of 32 or 64 bits");
  static_assert(std::is_floating_point_v<Float>, "what is not traced must be no code of a kernel");
  using Bits = std::make_unsigned_t<T>;
  constexpr Bits kHighest = Bits{1} << (8 * sizeof(T) - 1);
  if (a != a) return sizeof(T) == 8 || sizeof(a) == 8 ? static_cast<T>(kHighest) : T{0};
  constexpr T kLeast = std::is_signed_v<T> ? static_cast<T>(kHighest) : T{0};
  constexpr Float kEnd = static_cast<Float>(kHighest) * (std::is_signed_v<T> ? 1 : 2);
  if (a >= kEnd) return static_cast<T>(~static_cast<Bits>(kLeast));
  return a <= static_cast<Float>(kLeast) ? kLeast : static_cast<T>(a);
}
}  // namespace cookbook::simt
__forceinline__ int __float2int_rn(float a) { return cookbook::simt::saturated<int>(rintf(a)); }
__forceinline__ int __float2int_rz(float a) { return cookbook::simt::saturated<int>(truncf(a)); }
__forceinline__ int __float2int_rd(float a) { return cookbook::simt::saturated<int>(floorf(a)); }
__forceinline__ int __float2int_ru(float a) { return cookbook::simt::saturated<int>(ceilf(a)); }
__forceinline__ unsigned __float2uint_rn(float a) {
  return cookbook::simt::saturated<unsigned>(rintf(a));
}
__forceinline__ float __int2float_rn(int a) { return static_cast<float>(a); }
__forceinline__ float __uint2float_rn(unsigned a) { return static_cast<float>(a); }

// glibc declares functions of these names too, so they are renamed instead of redefined.
namespace cookbook::simt {
__forceinline__ float fast_exp(float a) { return expf(a); }
__forceinline__ float fast_exp10(float a) { return powf(10.0f, a); }
__forceinline__ float fast_log(float a) { return logf(a); }
__forceinline__ float fast_log2(float a) { return log2f(a); }
__forceinline__ float fast_log10(float a) { return log10f(a); }
__forceinline__ float fast_sin(float a) { return sinf(a); }
__forceinline__ float fast_cos(float a) { return cosf(a); }
__forceinline__ float fast_tan(float a) { return tanf(a); }
__forceinline__ float fast_pow(float a, float b) { return powf(a, b); }
}  // namespace cookbook::simt
#define __expf(...) cookbook::simt::fast_exp(__VA_ARGS__)
#define __exp10f(...) cookbook::simt::fast_exp10(__VA_ARGS__)
#define __logf(...) cookbook::simt::fast_log(__VA_ARGS__)
#define __log2f(...) cookbook::simt::fast_log2(__VA_ARGS__)
#define __log10f(...) cookbook::simt::fast_log10(__VA_ARGS__)
#define __sinf(...) cookbook::simt::fast_sin(__VA_ARGS__)
#define __cosf(...) cookbook::simt::fast_cos(__VA_ARGS__)
#define __tanf(...) cookbook::simt::fast_tan(__VA_ARGS__)
#define __powf(...) cookbook::simt::fast_pow(__VA_ARGS__)

// CUDA's max and min take any mixture of arithmetic types; of a NaN and a number they return the
// number.
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
__forceinline__ constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return y;
  }
  return x < y ? y : x;
}
template <class A, class B,
          class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
__forceinline__ constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return y;
  }
  return y < x ? y : x;
}

namespace cookbook {

template <class T>
__forceinline__ T* dynamic_shared() {
  return static_cast<T*>(cookbook::simt::dynamic_shared_memory());
}

}  // namespace cookbook
