// SPDX-License-Identifier: MIT
/// @file
/// FP8 numbers of the OCP specification, for storage: `fp8_e4m3` (largest 448, no infinity) and
/// `fp8_e5m2` (largest 57,344). Both convert explicitly from and to float. Conversion from float
/// rounds to nearest, ties to even. Numbers beyond the largest, infinity included, become the
/// largest; NaN becomes 0x7f (CUDA Math API, "FP8 Intrinsics").
#pragma once

#include "common/device/cuda.cuh"

#if !defined(COOKBOOK_SIMT)
#include <cuda_fp8.h>
#else
#include "common/backend/simt/language/fp8_types.hpp"
#endif

namespace cookbook {

using fp8_e4m3 = __nv_fp8_e4m3;
using fp8_e5m2 = __nv_fp8_e5m2;

}  // namespace cookbook
