// SPDX-License-Identifier: MIT
// ldmatrix, stmatrix and mma.sync on the SIMT backend; what the functions do is documented in
// common/device/mma.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/backend/simt/units/numbers.hpp"
#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void ldmatrix(uint32_t* r, int matrices, const void* smem_row, bool transposed);
void stmatrix(const uint32_t* r, int matrices, void* smem_row, bool transposed);
void mma_m16n8(float* d, const uint32_t* a, const uint32_t* b, Format format);
// d += a * b of bytes, 16x8x32, with 32-bit sums that wrap around.
void mma_m16n8k32_bytes(uint32_t* d, const uint32_t* a, const uint32_t* b, bool a_is_signed,
                        bool b_is_signed);
// d += a * b, 16x8x32 of fp8 or 16x8x16 of 16 bits; sums of fp32, or two of fp16 per register.
void mma_m16n8_elements(uint32_t* d, const uint32_t* a, const uint32_t* b, Format format_a,
                        Format format_b, bool half_result);

}  // namespace simt

__forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* smem_row) {
  simt::ldmatrix(r, 2, smem_row, false);
}
__forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* smem_row) {
  simt::ldmatrix(r, 4, smem_row, false);
}
__forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* smem_row) {
  simt::ldmatrix(r, 2, smem_row, true);
}
__forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* smem_row) {
  simt::ldmatrix(r, 4, smem_row, true);
}

__forceinline__ void stmatrix_x4(void* smem_row, const uint32_t (&r)[4]) {
  simt::stmatrix(r, 4, smem_row, false);
}
__forceinline__ void stmatrix_x4_trans(void* smem_row, const uint32_t (&r)[4]) {
  simt::stmatrix(r, 4, smem_row, true);
}

template <class T>
__forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, half>, "bf16 or half");
  simt::mma_m16n8(d, a, b, std::is_same_v<T, bf16> ? simt::Format::bf16 : simt::Format::f16);
}

__forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4],
                                      const uint32_t (&b)[2]) {
  simt::mma_m16n8(d, a, b, simt::Format::tf32);
}

uint32_t to_tf32(float value);

}  // namespace cookbook
