// SPDX-License-Identifier: MIT
/// @file
/// Wide memory accesses: one load or store instruction of 4, 8 or 16 bytes per thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/device/cuda.cuh"

namespace cookbook {

/// `kCount` elements that one instruction moves; aligned to their total size.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
  __host__ __device__ T& operator[](int i) { return values[i]; }
  __host__ __device__ const T& operator[](int i) const { return values[i]; }
};

using floatx2 = Pack<float, 2>;
using floatx4 = Pack<float, 4>;

namespace detail {

template <int kBytes>
struct Word;
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class V>
using WordOf = typename Word<static_cast<int>(sizeof(V))>::type;

template <class To, class From>
__device__ __forceinline__ To reinterpret_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  // The destination is a local variable: registers are renamed, memory is not accessed.
  __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
  return to;
}

}  // namespace detail

/// Loads a `V` of 2, 4, 8 or 16 bytes from `source`, aligned to sizeof(V), in one instruction.
template <class V>
__device__ __forceinline__ V load_vector(const void* source) {
  using Word = detail::WordOf<V>;
  // A named copy: passed by reference, nvcc would load the bytes of `source` one by one.
  const Word word = *static_cast<const Word*>(source);
  return detail::reinterpret_bits<V>(word);
}

/// Stores a `V` of 2, 4, 8 or 16 bytes to `destination`, aligned to sizeof(V), in one instruction.
/// `value` must be in registers: from shared memory nvcc stores 4 bytes at a time (chapter 3).
template <class V>
__device__ __forceinline__ void store_vector(void* destination, const V& value) {
  using Word = detail::WordOf<V>;
  *static_cast<Word*>(destination) = detail::reinterpret_bits<Word>(value);
}

/// Loads a `V` of 4, 8 or 16 bytes of global memory that no thread writes during the kernel and
/// that is read once: the read-only path, without allocating a line in L1 (PTX ISA, "ld.global.nc",
/// `.L1::no_allocate`).
template <class V>
__device__ __forceinline__ V load_vector_streaming(const void* source) {
#if defined(__CUDACC__)
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16, "4, 8 or 16 bytes");
  using Word = detail::WordOf<V>;
  Word word;
  if constexpr (sizeof(V) == 16) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                 : "l"(__cvta_generic_to_global(source)));
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(word.x), "=r"(word.y)
                 : "l"(__cvta_generic_to_global(source)));
  } else {
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];"
                 : "=r"(word)
                 : "l"(__cvta_generic_to_global(source)));
  }
  return detail::reinterpret_bits<V>(word);
#else
  return load_vector<V>(source);
#endif
}

/// Stores a `V` of 2, 4, 8 or 16 bytes to global memory that will not be read soon: evicted from
/// the caches first (PTX ISA, "st", `.cs`).
template <class V>
__device__ __forceinline__ void store_vector_streaming(void* destination, const V& value) {
#if defined(__CUDACC__)
  using Word = detail::WordOf<V>;
  __stcs(static_cast<Word*>(destination), detail::reinterpret_bits<Word>(value));
#else
  store_vector(destination, value);
#endif
}

}  // namespace cookbook
