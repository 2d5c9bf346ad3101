// SPDX-License-Identifier: MIT
/// @file
/// Bulk reductions to global memory, sm_90 (PTX ISA, "cp.reduce.async.bulk"). Groups, waits and the
/// fence before them are those of TMA stores.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"
#include "common/device/tma.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/bulk_add.hpp"
#else

namespace cookbook {

/// Adds `floats` contiguous floats in shared memory (a multiple of 4) to as many in global memory,
/// each addition atomic, in any order (PTX ISA, "cp.reduce.async.bulk", `.add.f32`); alignment as
/// bulk_load, groups as tma_store_2d.
__device__ __forceinline__ void bulk_store_add(float* gmem, const void* smem, uint32_t floats) {
  COOKBOOK_ASM_SM90(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(gmem),
      "r"(shared_address(smem)), "r"(floats * 4)
      : "memory");
}

}  // namespace cookbook

#endif
