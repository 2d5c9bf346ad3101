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
