// SPDX-License-Identifier: MIT
// mma.sync with block scales on the SIMT backend; what the functions do is documented in
// common/device/mma_scaled.cuh.
#pragma once

#include <cstdint>

#include "common/backend/simt/units/numbers.hpp"
#include "common/device/cuda.cuh"
#include "common/device/tma.cuh"

namespace cookbook {
namespace simt {

/// What the instruction's name says. fp4 operands have a depth k of 64, others of 32.
struct ScaledMma {
  Format format_a, format_b;
  int scale_vector;  ///< scales per row: 1, 2, 4 (.scale_vec::1X, 2X, 4X)
  bool ue8m0;        ///< else UE4M3
};
/// A register of scales: the byte of the first one, and which of the lanes have them.
struct ScaleOperand {
  uint32_t scales, byte, thread;
};
/// d += a * b, 16x8x32 or 16x8x64.
void mma_m16n8_scaled(float* d, const uint32_t* a, const uint32_t* b, const ScaledMma& kind,
                      const ScaleOperand& scale_a, const ScaleOperand& scale_b);

}  // namespace simt

__forceinline__ void mma_m16n8k32_mxfp8(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2], uint32_t scales_a, int pair_a,
                                        uint32_t scales_b, int lane_b, int byte) {
  const auto from = static_cast<uint32_t>(byte);
  simt::mma_m16n8_scaled(d, a, b, {simt::Format::e4m3, simt::Format::e4m3, 1, true},
                         {scales_a, from, static_cast<uint32_t>(pair_a)},
                         {scales_b, from, static_cast<uint32_t>(lane_b)});
}

__forceinline__ void mma_m16n8k64_nvfp4(float (&d)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2], uint32_t scales_a, int pair_a,
                                        uint32_t scales_b, int lane_b) {
  simt::mma_m16n8_scaled(d, a, b, {simt::Format::e2m1, simt::Format::e2m1, 4, false},
                         {scales_a, 0, static_cast<uint32_t>(pair_a)},
                         {scales_b, 0, static_cast<uint32_t>(lane_b)});
}

__forceinline__ void bulk_load_scales(void* smem, const void* gmem, uint32_t bytes, uint64_t* bar) {
  bulk_load(smem, gmem, bytes, bar);
}

}  // namespace cookbook
