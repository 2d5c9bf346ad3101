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
