// SPDX-License-Identifier: MIT
// Inline PTX of a checked program: what tools/check/ptx.py calls besides the units' own functions.
// All of it is inlined, so that a unit sees the program's line as its caller.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/backend/simt/language/intrinsics.hpp"
#include "common/device/bulk_add.cuh"
#include "common/device/cluster_async.cuh"
#include "common/device/cluster_launch_control.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/math.cuh"
#include "common/device/mma.cuh"
#include "common/device/mma_scaled.cuh"
#include "common/device/sync.cuh"
#include "common/device/tcgen05.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::simt::ptx {

// ---- registers: bits of 8 to 64 bits, or a predicate ----

template <size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<
        kBytes == 2, uint16_t,
        std::conditional_t<kBytes == 4, uint32_t,
                           std::conditional_t<kBytes == 8, uint64_t, unsigned __int128>>>>;

/// As reinterpret(), of types with constructors too. Its argument is a copy: of an operand in
/// memory that is an access of its type, but of the memcpy() it would be one of unaligned bytes.
template <class To, class From>
__forceinline__ To reread(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are neither lost nor made up");
  To to;
  __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
  return to;
}
/// What `bits` mean as a T; a wider register's low bits.
template <class T, class B>
__forceinline__ T as(B bits) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<B, bool>) {
    return static_cast<T>(bits);
  } else {
    return reread<T>(static_cast<Bits<sizeof(T)>>(bits));
  }
}
/// The bits of any value of C++, sign-extended as an integer is.
template <class B, class T>
__forceinline__ B in(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<B>(reinterpret_cast<uintptr_t>(value));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<B>(value);
  } else if constexpr (std::is_array_v<T>) {
    return static_cast<B>(reinterpret_cast<uintptr_t>(&value[0]));
  } else {
    return static_cast<B>(reread<Bits<sizeof(T)>>(value));
  }
}
template <class B, class T>
__forceinline__ void set(B& bits, const T& value) {
  bits = in<B>(value);
}
/// Writes bits to a variable of the program.
template <class T, class B>
__forceinline__ void out(T& variable, B bits) {
  if constexpr (std::is_pointer_v<T>) {
    variable = reinterpret_cast<T>(static_cast<uintptr_t>(bits));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    variable = static_cast<T>(bits);
  } else {
    variable = as<T>(bits);
  }
}
template <class B, class... P>
__forceinline__ void unpack(B bits, P&... parts) {
  constexpr size_t kWidth = 8 * sizeof(B) / sizeof...(P);
  int at = 0;
  (set(parts, static_cast<Bits<kWidth / 8>>(bits >> (kWidth * static_cast<size_t>(at++)))), ...);
}
template <class B, class... P>
__forceinline__ B pack(P... parts) {
  B bits = 0;
  size_t at = 0;
  ((bits |= static_cast<B>(static_cast<B>(parts) << (8 * sizeof(parts) * at++))), ...);
  return bits;
}

// ---- arithmetic ----

template <class T>
inline constexpr bool is_half = !std::is_arithmetic_v<T>;

template <class T>
__forceinline__ T min(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  else
    return b < a ? b : a;
}
template <class T>
__forceinline__ T max(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  else
    return a < b ? b : a;
}
template <class T>
__forceinline__ T fma(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(a, b, c);
  else if constexpr (sizeof(T) == 4 && is_half<T>)
    return __hfma2(a, b, c);
  else
    return __hfma(a, b, c);
}
template <class T>
__forceinline__ T abs(T a) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(a);
  else
    return a < T(0) ? T(-a) : a;
}
/// `.ftz`: a denormal result is zero.
__forceinline__ float flush(float a) {
  return std::fabs(a) < 0x1p-126f ? std::copysign(0.0f, a) : a;
}
template <class T>
__forceinline__ T invert(T a) {
  if constexpr (std::is_same_v<T, bool>)
    return !a;
  else
    return static_cast<T>(~a);
}
template <class T>
__forceinline__ T reversed(T a) {
  if constexpr (sizeof(T) == 8)
    return __brevll(a);
  else
    return __brev(a);
}
/// The product of twice the width, and its upper half.
template <class T>
__forceinline__ auto multiply_wide(T a, T b) {
  using Wide =
      std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, int32_t, int64_t>,
                         std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
  return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
template <class T>
__forceinline__ T multiply_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T)));
}
/// Shifts by more than the width leave nothing, or the sign.
template <class T>
__forceinline__ T shl(T a, uint32_t by) {
  using U = std::make_unsigned_t<T>;
  return by < 8 * sizeof(T) ? static_cast<T>(static_cast<U>(a) << by) : T(0);
}
template <class T>
__forceinline__ T shr(T a, uint32_t by) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (by < kWidth ? by : kWidth - 1));
  else
    return by < kWidth ? static_cast<T>(a >> by) : T(0);
}
template <class T>
__forceinline__ uint32_t popc(T a) {
  return static_cast<uint32_t>(__builtin_popcountll(a));
}
template <class T>
__forceinline__ uint32_t clz(T a) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  return a == 0 ? kWidth : static_cast<uint32_t>(__builtin_clzll(a)) + kWidth - 64;
}
__forceinline__ uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  }
  return result;
}
/// Of `a`, `length` bits from `start` on.
template <class T>
__forceinline__ T extract(T a, uint32_t start, uint32_t length) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  start &= 255, length &= 255;
  if (length == 0) return 0;
  const uint32_t rest = kWidth - min(length, kWidth);
  const uint32_t end = start + (kWidth - rest);
  if (end > kWidth) return shr(a, start);
  return static_cast<T>(shl(a, kWidth - end) >> rest);
}
/// `b` with the low `length` bits of `a` from `start` on.
template <class T>
__forceinline__ T insert(T a, T b, uint32_t start, uint32_t length) {
  const T mask = shl(static_cast<T>(shl(T(1), length & 255) - 1), start & 255);
  return static_cast<T>((shl(a, start & 255) & mask) | (b & ~mask));
}

enum class Round { rn, rz, rni, rzi, rmi, rpi };
template <class To, class From>
__forceinline__ To convert(From value, Round round) {
  if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(value), round);
  } else if constexpr (std::is_floating_point_v<From> && !is_half<To>) {
    const From whole = round == Round::rni   ? std::rint(value)
                       : round == Round::rzi ? std::trunc(value)
                       : round == Round::rmi ? std::floor(value)
                       : round == Round::rpi ? std::ceil(value)
                                             : value;
    if constexpr (std::is_integral_v<To>)
      return saturated<To>(whole);
    else
      return static_cast<To>(whole);
  } else {
    return static_cast<To>(value);
  }
}

enum class Pair { add, sub, mul, fma };
/// Of `.f32x2`: on both halves.
template <Pair kWhat>
__forceinline__ uint64_t two_floats(uint64_t a, uint64_t b, uint64_t c = 0) {
  uint64_t result = 0;
  for (int at = 0; at < 64; at += 32) {
    const auto x = as<float>(a >> at), y = as<float>(b >> at), z = as<float>(c >> at);
    const float value = kWhat == Pair::add   ? x + y
                        : kWhat == Pair::sub ? x - y
                        : kWhat == Pair::mul ? x * y
                                             : std::fma(x, y, z);
    result |= static_cast<uint64_t>(in<uint32_t>(value)) << at;
  }
  return result;
}

// ---- memory ----

template <class T>
__forceinline__ T* shared(uint32_t address) {
  return static_cast<T*>(shared_pointer(address));
}
/// Of a register of 64 bits: an address in shared memory, or a generic one.
template <class T>
__forceinline__ T* wide_shared(uint64_t address) {
  if (address >> 32 != 0) return reinterpret_cast<T*>(address);
  return shared<T>(static_cast<uint32_t>(address));
}
template <class T>
__forceinline__ T* generic(uint64_t address) {
  return reinterpret_cast<T*>(address);
}
template <class T>
__forceinline__ T load(const T* from) {
  return *from;
}
template <class T>
__forceinline__ T load_volatile(const T* from) {
  return *static_cast<const volatile T*>(from);
}
template <class T>
__forceinline__ T load_acquire(const T* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  return static_cast<T>(simt::load_acquire(from, sizeof(T)));
}
template <class T>
__forceinline__ void store(T* to, T value) {
  *to = value;
}
template <class T>
__forceinline__ void store_volatile(T* to, T value) {
  *static_cast<volatile T*>(to) = value;
}
template <class T>
__forceinline__ void store_release(T* to, T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  simt::store_release(to, static_cast<uint64_t>(value), sizeof(T));
}
/// One request of up to 16 bytes; more are two.
template <int kCount, class T>
__forceinline__ void load(T* to, const T* from) {
  if constexpr (sizeof(T) * kCount > 16) {
    load<kCount / 2>(to, from), load<kCount / 2>(to + kCount / 2, from + kCount / 2);
  } else if constexpr (sizeof(T) * kCount == 16) {
    const uint4 all = *reinterpret_cast<const uint4*>(from);
    __builtin_memcpy(to, static_cast<const void*>(&all), 16);
  } else {
    const auto all = *reinterpret_cast<const Bits<sizeof(T) * kCount>*>(from);
    __builtin_memcpy(to, &all, sizeof all);
  }
}
template <int kCount, class T>
__forceinline__ void store(T* to, const T* from) {
  if constexpr (sizeof(T) * kCount > 16) {
    store<kCount / 2>(to, from), store<kCount / 2>(to + kCount / 2, from + kCount / 2);
  } else if constexpr (sizeof(T) * kCount == 16) {
    uint4 all;
    __builtin_memcpy(static_cast<void*>(&all), from, 16);
    *reinterpret_cast<uint4*>(to) = all;
  } else {
    Bits<sizeof(T) * kCount> all;
    __builtin_memcpy(&all, from, sizeof all);
    *reinterpret_cast<Bits<sizeof(T) * kCount>*>(to) = all;
  }
}

// ---- warps and blocks ----

__forceinline__ uint32_t thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__forceinline__ uint32_t block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
__forceinline__ uint32_t block_number() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
uint32_t sm_count();

/// `c` of a shuffle: the mask of the segment in bits 8 to 12, the clamp in bits 0 to 4.
__forceinline__ int shuffle_width(uint32_t c) { return 32 - static_cast<int>(c >> 8 & 31); }
__forceinline__ uint32_t shuffle_up(uint32_t mask, uint32_t a, uint32_t b, uint32_t c) {
  return __shfl_up_sync(mask, a, b, shuffle_width(c));
}
__forceinline__ uint32_t shuffle_down(uint32_t mask, uint32_t a, uint32_t b, uint32_t c) {
  return __shfl_down_sync(mask, a, b, shuffle_width(c));
}
__forceinline__ uint32_t shuffle_bfly(uint32_t mask, uint32_t a, uint32_t b, uint32_t c) {
  return __shfl_xor_sync(mask, a, static_cast<int>(b), shuffle_width(c));
}
__forceinline__ uint32_t shuffle_idx(uint32_t mask, uint32_t a, uint32_t b, uint32_t c) {
  return __shfl_sync(mask, a, static_cast<int>(b), shuffle_width(c));
}
/// Whether the lane that such a shuffle reads is in the segment.
__forceinline__ bool shuffle_up_exists(uint32_t b, uint32_t c) {
  return lane_id() % static_cast<uint32_t>(shuffle_width(c)) >= b;
}
__forceinline__ bool shuffle_down_exists(uint32_t b, uint32_t c) {
  const auto width = static_cast<uint32_t>(shuffle_width(c));
  return lane_id() % width + b < width;
}
__forceinline__ bool shuffle_bfly_exists(uint32_t b, uint32_t c) {
  const auto width = static_cast<uint32_t>(shuffle_width(c));
  return ((lane_id() ^ b) & ~(width - 1)) <= (lane_id() & ~(width - 1));
}
__forceinline__ bool shuffle_idx_exists(uint32_t, uint32_t) { return true; }

// ---- barriers ----

/// In which block of the cluster `pointer` is, and the same place in the own block.
struct Remote {
  uint64_t* own;
  uint32_t rank;
  bool is_other;
};
Remote find_remote(uint64_t* pointer);

/// Both return the state that test_wait and try_wait without .parity take.
__forceinline__ uint64_t arrive(uint64_t* bar, uint32_t count, bool of_cluster) {
  const Remote remote = find_remote(bar);
  if (remote.is_other || of_cluster) {
    for (; count > 0; --count) {
      if (of_cluster)
        mbarrier_arrive_cluster(remote.own, remote.rank);
      else
        mbarrier_arrive_cluster_relaxed(remote.own, remote.rank);
    }
    return 0;
  }
  const uint64_t state = mbarrier_parity(bar);
  if (count == 1)
    mbarrier_arrive(bar);
  else
    mbarrier_arrive(bar, count);
  return state;
}
__forceinline__ uint64_t arrive_expect_bytes(uint64_t* bar, uint32_t bytes, bool of_cluster) {
  if (of_cluster || find_remote(bar).is_other) {
    mbarrier_arrive_expect_tx_at(bar, bytes, of_cluster);
    return 0;
  }
  const uint64_t state = mbarrier_parity(bar);
  mbarrier_arrive_expect_tx(bar, bytes);
  return state;
}
__forceinline__ void expect_bytes(uint64_t* bar, uint32_t bytes) { mbarrier_expect_tx(bar, bytes); }
__forceinline__ void store_async(void* to, const void* value, size_t bytes, uint64_t* bar) {
  const Remote place = find_remote(static_cast<uint64_t*>(to)), barrier = find_remote(bar);
  simt::store_async(place.own, value, static_cast<int>(bytes), barrier.own, place.rank);
}

// ---- cluster launch control ----

__forceinline__ bool is_canceled(unsigned __int128 answer) {
  return clc_is_canceled(static_cast<uint64_t>(answer), static_cast<uint64_t>(answer >> 64));
}
__forceinline__ uint3 first_block(unsigned __int128 answer) {
  return clc_first_block(static_cast<uint64_t>(answer), static_cast<uint64_t>(answer >> 64));
}

// ---- wgmma ----

/// Fail: what the unit does not have.
void refuse_accumulators();
void refuse_scale();

/// The accumulators as an array, which they must be: the unit writes them when the wgmma ends.
template <int kCount>
__forceinline__ float* contiguous(float* const (&sums)[kCount]) {
  bool is_array = true;
  for (int i = 1; i < kCount; ++i) is_array &= sums[i] == sums[0] + i;
  if (!is_array) refuse_accumulators();
  return sums[0];
}
__forceinline__ void require_positive(int scale_a, int scale_b) {
  if (scale_a != 1 || scale_b != 1) refuse_scale();
}

}  // namespace cookbook::simt::ptx
