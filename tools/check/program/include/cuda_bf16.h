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
struct __nv_bfloat162_raw {
  unsigned short x, y;
};
