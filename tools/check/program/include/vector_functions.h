// SPDX-License-Identifier: MIT
// The vector types that kernels of the book do not use.
#pragma once

#include "common/backend/simt/language/vector_types.hpp"

#define COOKBOOK_SIMT_VECTOR_3(NAME, T) \
  struct NAME {                         \
    T x, y, z;                          \
  };                                    \
  inline constexpr NAME make_##NAME(T x, T y, T z) { return NAME{x, y, z}; }
COOKBOOK_SIMT_VECTOR_3(char3, signed char)
COOKBOOK_SIMT_VECTOR_3(uchar3, unsigned char)
COOKBOOK_SIMT_VECTOR_3(short3, short)
COOKBOOK_SIMT_VECTOR_3(ushort3, unsigned short)
COOKBOOK_SIMT_VECTOR_3(double3, double)
COOKBOOK_SIMT_VECTOR_3(long3, long)
COOKBOOK_SIMT_VECTOR_3(ulong3, unsigned long)
COOKBOOK_SIMT_VECTOR_3(longlong3, long long)
COOKBOOK_SIMT_VECTOR_3(ulonglong3, unsigned long long)
#undef COOKBOOK_SIMT_VECTOR_3

// A GPU moves these in two instructions of 16 bytes.
#define COOKBOOK_SIMT_VECTOR_4(NAME, T) \
  struct alignas(16) NAME {             \
    T x, y, z, w;                       \
  };                                    \
  inline constexpr NAME make_##NAME(T x, T y, T z, T w) { return NAME{x, y, z, w}; }
COOKBOOK_SIMT_VECTOR_4(double4, double)
COOKBOOK_SIMT_VECTOR_4(long4, long)
COOKBOOK_SIMT_VECTOR_4(ulong4, unsigned long)
COOKBOOK_SIMT_VECTOR_4(longlong4, long long)
COOKBOOK_SIMT_VECTOR_4(ulonglong4, unsigned long long)
#undef COOKBOOK_SIMT_VECTOR_4

struct long1 {
  long x;
};
struct ulong1 {
  unsigned long x;
};
struct longlong1 {
  long long x;
};
struct ulonglong1 {
  unsigned long long x;
};
struct alignas(16) long2 {
  long x, y;
};
struct alignas(16) ulong2 {
  unsigned long x, y;
};
inline constexpr long2 make_long2(long x, long y) { return {x, y}; }
inline constexpr ulong2 make_ulong2(unsigned long x, unsigned long y) { return {x, y}; }
