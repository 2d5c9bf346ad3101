// SPDX-License-Identifier: MIT
#pragma once

#include "common/device/cuda.cuh"

namespace cookbook {

/// How many pieces of `piece` cover `extent`; 0 where there is nothing. extent + piece - 1 must not
/// overflow the wider of the two types.
template <class A, class B>
__host__ __device__ constexpr auto ceil_div(A extent, B piece) {
  return (extent + piece - 1) / piece;
}

}  // namespace cookbook
