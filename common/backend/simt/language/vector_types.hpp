// SPDX-License-Identifier: MIT
// CUDA's vector types for g++.
//
// A vector of 8 or 16 bytes is a union with a GCC vector and copies through it, so that copying one
// is a single access of the whole width, as `ld.global.v4` is on a GPU. A plain struct would be
// split into scalar accesses and the traced build would count four requests where hardware makes
// one.
#pragma once

#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};

struct int3 {
  int x, y, z;
};

struct float3 {
  float x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

// The first constructor is constexpr (it names the scalars); copies go through the vector member.
#define COOKBOOK_SIMT_VECTOR_1(NAME, T) \
  struct NAME {                         \
    T x;                                \
  };                                    \
  inline constexpr NAME make_##NAME(T x) { return NAME{x}; }

#define COOKBOOK_SIMT_VECTOR_2(NAME, T)                                     \
  struct alignas(sizeof(T) * 2) NAME {                                      \
    typedef T Whole __attribute__((vector_size(sizeof(T) * 2), may_alias)); \
    union {                                                                 \
      struct {                                                              \
        T x, y;                                                             \
      };                                                                    \
      Whole whole;                                                          \
    };                                                                      \
    NAME() = default;                                                       \
    constexpr NAME(T x_, T y_) : x(x_), y(y_) {}                            \
    NAME(const NAME& other) : whole(other.whole) {}                         \
    NAME& operator=(const NAME& other) {                                    \
      whole = other.whole;                                                  \
      return *this;                                                         \
    }                                                                       \
  };                                                                        \
  inline NAME make_##NAME(T x, T y) { return NAME(x, y); }

#define COOKBOOK_SIMT_VECTOR_4(NAME, T)                                                \
  struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) NAME {                       \
    typedef T Whole __attribute__((vector_size(sizeof(T) * 4), may_alias,              \
                                   aligned(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16))); \
    union {                                                                            \
      struct {                                                                         \
        T x, y, z, w;                                                                  \
      };                                                                               \
      Whole whole;                                                                     \
    };                                                                                 \
    NAME() = default;                                                                  \
    constexpr NAME(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}             \
    NAME(const NAME& other) : whole(other.whole) {}                                    \
    NAME& operator=(const NAME& other) {                                               \
      whole = other.whole;                                                             \
      return *this;                                                                    \
    }                                                                                  \
  };                                                                                   \
  inline NAME make_##NAME(T x, T y, T z, T w) { return NAME(x, y, z, w); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
COOKBOOK_SIMT_VECTOR_1(char1, signed char)
COOKBOOK_SIMT_VECTOR_1(uchar1, unsigned char)
COOKBOOK_SIMT_VECTOR_1(short1, short)
COOKBOOK_SIMT_VECTOR_1(ushort1, unsigned short)
COOKBOOK_SIMT_VECTOR_1(int1, int)
COOKBOOK_SIMT_VECTOR_1(uint1, unsigned)
COOKBOOK_SIMT_VECTOR_1(float1, float)
COOKBOOK_SIMT_VECTOR_1(double1, double)
COOKBOOK_SIMT_VECTOR_2(char2, signed char)
COOKBOOK_SIMT_VECTOR_2(uchar2, unsigned char)
COOKBOOK_SIMT_VECTOR_2(short2, short)
COOKBOOK_SIMT_VECTOR_2(ushort2, unsigned short)
COOKBOOK_SIMT_VECTOR_2(int2, int)
COOKBOOK_SIMT_VECTOR_2(uint2, unsigned)
COOKBOOK_SIMT_VECTOR_2(float2, float)
COOKBOOK_SIMT_VECTOR_2(double2, double)
COOKBOOK_SIMT_VECTOR_2(longlong2, long long)
COOKBOOK_SIMT_VECTOR_2(ulonglong2, unsigned long long)
COOKBOOK_SIMT_VECTOR_4(char4, signed char)
COOKBOOK_SIMT_VECTOR_4(uchar4, unsigned char)
COOKBOOK_SIMT_VECTOR_4(short4, short)
COOKBOOK_SIMT_VECTOR_4(ushort4, unsigned short)
COOKBOOK_SIMT_VECTOR_4(int4, int)
COOKBOOK_SIMT_VECTOR_4(uint4, unsigned)
COOKBOOK_SIMT_VECTOR_4(float4, float)
#pragma GCC diagnostic pop

#undef COOKBOOK_SIMT_VECTOR_1
#undef COOKBOOK_SIMT_VECTOR_2
#undef COOKBOOK_SIMT_VECTOR_4

inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }
inline constexpr int3 make_int3(int x, int y, int z) { return int3{x, y, z}; }
inline constexpr float3 make_float3(float x, float y, float z) { return float3{x, y, z}; }
