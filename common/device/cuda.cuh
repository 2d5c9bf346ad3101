// SPDX-License-Identifier: MIT
/// @file
/// The CUDA C++ that every kernel may use: CUDA's own headers on the CUDA backend, their
/// equivalents for the CPU on the SIMT backend.
#pragma once

#if !defined(COOKBOOK_SIMT)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdint>
#include <cstdio>

#if defined(__CUDACC__)
namespace cookbook {

/// The dynamic shared memory of the block, aligned to 1024 bytes (required by the 128-byte
/// swizzle). Its size is LaunchConfig::smem_bytes; all calls return the same memory.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char cookbook_dynamic_shared[];
  return reinterpret_cast<T*>(cookbook_dynamic_shared);
}

}  // namespace cookbook
#endif

#else
#include "common/backend/simt/language/intrinsics.hpp"
#endif

namespace cookbook {

using bf16 = __nv_bfloat16;
using half = __half;

}  // namespace cookbook
