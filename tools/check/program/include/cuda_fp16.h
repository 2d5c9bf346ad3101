// SPDX-License-Identifier: MIT
#pragma once
#include "cuda_runtime.h"

/// The bits of a __half.
struct __half_raw {
  unsigned short x;
  __half_raw() = default;
  explicit __half_raw(__half value) : x(value.bits) {}
  operator __half() const { return __half::from_bits(x); }
};
struct __half2_raw {
  unsigned short x, y;
};
inline __half2 h2log2(__half2 a) { return __half2(hlog2(a.x), hlog2(a.y)); }
/// Rounded towards 0: of the two neighbours of `a` the nearest one may be the larger.
inline __half __float2half_rz(float a) {
  __half value(a);
  if (fabsf(static_cast<float>(value)) > fabsf(a)) --value.bits;
  return value;
}
