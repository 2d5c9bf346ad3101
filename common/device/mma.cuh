// SPDX-License-Identifier: MIT
/// @file
/// Tensor-core instructions of one warp, and the loads that prepare their operands (PTX ISA, "Warp
/// Level Matrix Instructions").
///
/// Fragment layouts, with g = lane / 4 and t = lane % 4. A 32-bit register holds two neighbouring
/// columns of A (rows of B), the lower index in the lower half:
///
///     m16n8k16, 16-bit                     m16n8k8, tf32
///     a[0] = A[g    ][2t, 2t+1]            a[0] = A[g    ][t    ]
///     a[1] = A[g + 8][2t, 2t+1]            a[1] = A[g + 8][t    ]
///     a[2] = A[g    ][2t + 8, 2t + 9]      a[2] = A[g    ][t + 4]
///     a[3] = A[g + 8][2t + 8, 2t + 9]      a[3] = A[g + 8][t + 4]
///     b[0] = B[2t, 2t + 1    ][g]          b[0] = B[t    ][g]
///     b[1] = B[2t + 8, 2t + 9][g]          b[1] = B[t + 4][g]
///     d[0], d[1] = D[g][2t, 2t + 1]        d[2], d[3] = D[g + 8][2t, 2t + 1]   (both shapes)
#pragma once

#include <type_traits>

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/mma.hpp"
#else

namespace cookbook {

/// Loads two 8x8 matrices of 16-bit elements from shared memory (PTX ISA, "ldmatrix"). Lanes
/// 8i..8i+7 give the addresses of the rows of matrix i, 16 bytes each, 16-byte aligned. Lane l
/// receives M_i[l / 4][2 (l % 4), +1] in r[i]. All 32 lanes of the warp must call.
__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* smem_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(smem_row))
               : "memory");
}

/// The same for four matrices.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* smem_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(smem_row))
               : "memory");
}

/// As ldmatrix_x2, each matrix transposed: lane l receives M[2 (l % 4), +1][l / 4].
__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* smem_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(smem_row))
               : "memory");
}

/// As ldmatrix_x4, each matrix transposed: lane l receives M[2 (l % 4), +1][l / 4].
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* smem_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(smem_row))
               : "memory");
}

/// Stores four 8x8 matrices of 16-bit elements to shared memory, sm_90 (PTX ISA, "stmatrix"): the
/// inverse of ldmatrix_x4. All 32 lanes of the warp must call.
__device__ __forceinline__ void stmatrix_x4(void* smem_row, const uint32_t (&r)[4]) {
  COOKBOOK_ASM_SM90("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                        shared_address(smem_row)),
                    "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                    : "memory");
}

/// The same with each matrix transposed: element (i, j) of a matrix is stored in row j. The address
/// of lane 8 q + j is that of row j of matrix q as stored (PTX ISA, "stmatrix", .trans).
__device__ __forceinline__ void stmatrix_x4_trans(void* smem_row, const uint32_t (&r)[4]) {
  COOKBOOK_ASM_SM90("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                        shared_address(smem_row)),
                    "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                    : "memory");
}

/// d += a * b, 16x8x16, T = bf16 or half, fp32 accumulators (PTX ISA, "mma.sync", m16n8k16).
/// sm_80. All 32 lanes of the warp must call.
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, half>, "bf16 or half");
  if constexpr (std::is_same_v<T, bf16>) {
    COOKBOOK_ASM_SM80(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    COOKBOOK_ASM_SM80(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// d += a * b, 16x8x8, tf32 inputs (see to_tf32), fp32 accumulators (PTX ISA, "mma.sync", m16n8k8).
/// sm_80. All 32 lanes of the warp must call.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4],
                                                 const uint32_t (&b)[2]) {
  COOKBOOK_ASM_SM80(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// The nearest tf32 (10 mantissa bits, ties away from zero) as a register (PTX ISA,
/// "cvt.rna.tf32"). sm_80.
__device__ __forceinline__ uint32_t to_tf32(float value) {
  uint32_t bits = 0;
  COOKBOOK_ASM_SM80("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

}  // namespace cookbook

#endif
