// SPDX-License-Identifier: MIT
/// @file
/// mma.sync with block scales, sm_120a (PTX ISA, "Block Scaling for mma.sync"): the tensor core
/// multiplies each a[k] b[k] with a scale of A's row and one of B's column.
///
/// Fragments are those of mma_m16n8k16 by their bytes, with g = lane / 4 and t = lane % 4: a
/// register holds 4 neighbouring columns of A (rows of B) of e4m3, or 8 of e2m1, the lowest in the
/// lowest bits. So ldmatrix loads both operands, 32 bytes of a row of A or a column of B per
/// instruction.
///
/// A register of scales has the four of a row, or of a column, that follow each other in k. Not
/// every lane's is read:
///
///     row m of A      lane 4 (m % 8) + 2 pair + m / 8    pair: 0 or 1
///     column n of B   lane 4 n + lane                    lane: 0 to 3
///
/// So let lane l load the scales of row (or column) l / 4 + 8 (l % 4). One register then serves two
/// pieces of A of 16 rows, pair 0 and 1, or four pieces of B of 8 columns.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/mma_scaled.hpp"
#else

// It exists in the architecture-specific target of sm_120; elsewhere it becomes a trap.
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define COOKBOOK_ASM_SM120A(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM120A(...) __trap()
#endif

namespace cookbook {

/// d += a * b, 16x8x32, MXFP8: e4m3 and a power of two (UE8M0) per 32 k, which is byte `byte` of
/// the scales. `byte`, `pair_a` and `lane_b` become constants when the loops around are unrolled.
/// All 32 lanes of the warp must call.
__device__ __forceinline__ void mma_m16n8k32_mxfp8(float (&d)[4], const uint32_t (&a)[4],
                                                   const uint32_t (&b)[2], uint32_t scales_a,
                                                   int pair_a, uint32_t scales_b, int lane_b,
                                                   int byte) {
  COOKBOOK_ASM_SM120A(
      "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col."
      "f32.e4m3.e4m3.f32.ue8m0 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "{%10}, {%11, %12}, {%13}, {%14, %15};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales_a),
        "h"(static_cast<uint16_t>(byte)), "h"(static_cast<uint16_t>(pair_a)), "r"(scales_b),
        "h"(static_cast<uint16_t>(byte)), "h"(static_cast<uint16_t>(lane_b)));
}

/// d += a * b, 16x8x64, NVFP4: e2m1 and a UE4M3 per 16 k, which is one of the four bytes of the
/// scales. The rest as above.
__device__ __forceinline__ void mma_m16n8k64_nvfp4(float (&d)[4], const uint32_t (&a)[4],
                                                   const uint32_t (&b)[2], uint32_t scales_a,
                                                   int pair_a, uint32_t scales_b, int lane_b) {
  COOKBOOK_ASM_SM120A(
      "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col."
      "f32.e2m1.e2m1.f32.ue4m3 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, "
      "{%10}, {0, %11}, {%12}, {0, %13};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales_a),
        "h"(static_cast<uint16_t>(pair_a)), "r"(scales_b), "h"(static_cast<uint16_t>(lane_b)));
}

/// As bulk_load, for scales. Around a copy to shared::cluster, ptxas 13.0 ignores setmaxnreg for
/// sm_120 (see COOKBOOK_TMA_TO); this one is to the block's own shared memory.
__device__ __forceinline__ void bulk_load_scales(void* smem, const void* gmem, uint32_t bytes,
                                                 uint64_t* bar) {
  COOKBOOK_ASM_SM120A(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(smem)),
      "l"(gmem), "r"(bytes), "r"(shared_address(bar))
      : "memory");
}

#undef COOKBOOK_ASM_SM120A

}  // namespace cookbook

#endif
