// SPDX-License-Identifier: MIT
/// @file
/// `nvcuda::wmma`: CUDA's own <mma.h>, or the subset of it that the SIMT backend has: 16x16x16,
/// 32x8x16 and 8x32x16 with half or bf16 inputs and 16x16x8 with tf32, fp32 accumulators (CUDA C++
/// Programming Guide, "Warp Matrix Functions").
#pragma once

#include "common/device/cuda.cuh"

#if defined(__CUDACC__)
#include <mma.h>
#else
#include "common/backend/simt/units/wmma.hpp"
#endif
