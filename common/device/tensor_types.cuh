// SPDX-License-Identifier: MIT
/// @file
/// Tensor-core instructions of element types that the book's GEMMs do not use: chapter 0 measures
/// their roofs. The SIMT backend has no model of them: `kTensorTypes` is false there, and a level
/// that needs them says so.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook {

#if defined(__CUDACC__) || defined(COOKBOOK_CUDA)
inline constexpr bool kTensorTypes = true;
#else
inline constexpr bool kTensorTypes = false;
#endif

#if !defined(__CUDACC__)

// Never called: no level that needs them supports the SIMT backend.
inline void mma_m16n8k32_s8(uint32_t (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]) {}
inline void wgmma_m64n256k8_tf32(float (&)[128], uint64_t, uint64_t) {}
inline void wgmma_m64n256k32_s8(uint32_t (&)[128], uint64_t, uint64_t) {}

#else

/// d += a * b, 16x8x32, signed 8-bit integers, 32-bit sums that wrap around (PTX ISA, "mma.sync",
/// m16n8k32). Registers hold four neighbouring columns of A (rows of B) where those of mma_m16n8k16
/// hold two. sm_80. All 32 lanes of the warp must call.
__device__ __forceinline__ void mma_m16n8k32_s8(uint32_t (&d)[4], const uint32_t (&a)[4],
                                                const uint32_t (&b)[2]) {
  COOKBOOK_ASM_SM80(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// d += a * b, 64 x 256 x 8, fp32 operands in shared memory, Major::k. The tensor core ignores
/// their 13 low bits (PTX ISA, "wgmma.mma_async", .tf32).
__device__ __forceinline__ void wgmma_m64n256k8_tf32(float (&d)[128], uint64_t desc_a,
                                                     uint64_t desc_b) {
  COOKBOOK_ASM_SM90A("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" COOKBOOK_REGS_128
                     "}, %128, %129, 1, 1, 1;"
                     : COOKBOOK_ACC_128(0)
                     : "l"(desc_a), "l"(desc_b));
}

#define COOKBOOK_SUM_4(i) "+r"(d[i]), "+r"(d[(i) + 1]), "+r"(d[(i) + 2]), "+r"(d[(i) + 3])
#define COOKBOOK_SUM_16(i) \
  COOKBOOK_SUM_4(i), COOKBOOK_SUM_4((i) + 4), COOKBOOK_SUM_4((i) + 8), COOKBOOK_SUM_4((i) + 12)
#define COOKBOOK_SUM_64(i)                                                  \
  COOKBOOK_SUM_16(i), COOKBOOK_SUM_16((i) + 16), COOKBOOK_SUM_16((i) + 32), \
      COOKBOOK_SUM_16((i) + 48)

/// d += a * b, 64 x 256 x 32, signed 8-bit integers in shared memory, Major::k; 32-bit sums that
/// wrap around (PTX ISA, "wgmma.mma_async", .s8).
__device__ __forceinline__ void wgmma_m64n256k32_s8(uint32_t (&d)[128], uint64_t desc_a,
                                                    uint64_t desc_b) {
  COOKBOOK_ASM_SM90A("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" COOKBOOK_REGS_128
                     "}, %128, %129, 1;"
                     : COOKBOOK_SUM_64(0), COOKBOOK_SUM_64(64)
                     : "l"(desc_a), "l"(desc_b));
}

#undef COOKBOOK_SUM_64
#undef COOKBOOK_SUM_16
#undef COOKBOOK_SUM_4

#endif

}  // namespace cookbook
