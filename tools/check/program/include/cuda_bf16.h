// SPDX-License-Identifier: MIT
#pragma once
#include "cuda_runtime.h"

/// The bits of a __nv_bfloat16.
struct __nv_bfloat16_raw {
  unsigned short x;
  __nv_bfloat16_raw() = default;
  explicit __nv_bfloat16_raw(__nv_bfloat16 value) : x(value.bits) {}
  operator __nv_bfloat16() const { return __nv_bfloat16::from_bits(x); }
};
inline __nv_bfloat162 h2log2(__nv_bfloat162 a) { return __nv_bfloat162(hlog2(a.x), hlog2(a.y)); }
