// SPDX-License-Identifier: MIT
/// @file
/// `nvcuda::wmma`: CUDA's own <mma.h>, or the subset of it that the SIMT backend has: 16x16x16,
/// 32x8x16 and 8x32x16 with half or bf16 inputs and 16x16x8 with tf32, fp32 accumulators (CUDA C++
/// Programming Guide, "Warp Matrix Functions").
#pragma once

#include "common/device/cuda.cuh"

#if defined(__CUDACC__)
#include <mma.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
// Below sm_80, <mma.h> has no fragments of bf16. Kernels compile there to a trap (see arch.cuh).
namespace nvcuda::wmma {

template <class Use, int kM, int kN, int kK, class Layout>
class fragment<Use, kM, kN, kK, __nv_bfloat16, Layout> {
 public:
  static constexpr int num_elements = 16;
  __nv_bfloat16 x[num_elements];
};

template <class Use, int kM, int kN, int kK, class Layout>
__device__ inline void load_matrix_sync(fragment<Use, kM, kN, kK, __nv_bfloat16, Layout>&,
                                        const __nv_bfloat16*, unsigned) {
  __trap();
}

template <int kM, int kN, int kK, class LayoutA, class LayoutB>
__device__ inline void mma_sync(fragment<accumulator, kM, kN, kK, float>&,
                                const fragment<matrix_a, kM, kN, kK, __nv_bfloat16, LayoutA>&,
                                const fragment<matrix_b, kM, kN, kK, __nv_bfloat16, LayoutB>&,
                                const fragment<accumulator, kM, kN, kK, float>&) {
  __trap();
}

}  // namespace nvcuda::wmma
#endif
#else
#include "common/backend/simt/units/wmma.hpp"
#endif
