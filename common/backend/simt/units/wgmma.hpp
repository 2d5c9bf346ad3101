// SPDX-License-Identifier: MIT
// wgmma on the SIMT backend; what the functions do is documented in common/device/wgmma.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/backend/simt/units/numbers.hpp"
#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

uint64_t wgmma_descriptor(Swizzle swizzle, const void* smem, uint32_t leading_bytes,
                          uint32_t stride_bytes);
void wgmma_wait(int pending_groups);
void wgmma_shared_a(float* d, int columns, Format format, bool a_is_mn_major, bool b_is_mn_major,
                    uint64_t desc_a, uint64_t desc_b, bool accumulate);
void wgmma_register_a(float* d, int columns, Format format, bool b_is_mn_major, const uint32_t* a,
                      uint64_t desc_b, bool accumulate);

template <int kN, class T>
inline constexpr bool wgmma_supports = (std::is_same_v<T, bf16> || std::is_same_v<T, half>)&&(
    kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 112 || kN == 128 ||
    kN == 144 || kN == 160 || kN == 176 || kN == 192 || kN == 208 || kN == 224 || kN == 240 ||
    kN == 256);

template <class T>
inline constexpr Format kWgmmaFormat = std::is_same_v<T, bf16> ? Format::bf16 : Format::f16;

}  // namespace simt

template <Swizzle kSwizzle>
__forceinline__ uint64_t wgmma_descriptor(const void* smem, uint32_t leading_bytes,
                                          uint32_t stride_bytes) {
  return simt::wgmma_descriptor(kSwizzle, smem, leading_bytes, stride_bytes);
}

__forceinline__ uint64_t wgmma_descriptor_advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

void wgmma_fence();
void wgmma_commit();

template <int kPendingGroups>
__forceinline__ void wgmma_wait() {
  static_assert(kPendingGroups >= 0 && kPendingGroups <= 7, "0..7 groups");
  simt::wgmma_wait(kPendingGroups);
}

// Calls of the runtime are opaque to g++: nothing moves across them anyway.
template <int kCount>
__forceinline__ void wgmma_fence_operand(float (&)[kCount]) {}
template <int kRows, int kCount>
__forceinline__ void wgmma_fence_operand(float (&)[kRows][kCount]) {}
template <int kCount>
__forceinline__ void wgmma_fence_operand(uint32_t (&)[kCount]) {}

template <int kN, class T, Major kMajorA = Major::k, Major kMajorB = Major::k>
__forceinline__ void wgmma_m64k16(float (&d)[kN / 2], uint64_t desc_a, uint64_t desc_b,
                                  bool accumulate) {
  static_assert(simt::wgmma_supports<kN, T>, "no such shape or type");
  simt::wgmma_shared_a(d, kN, simt::kWgmmaFormat<T>, kMajorA == Major::mn, kMajorB == Major::mn,
                       desc_a, desc_b, accumulate);
}

template <int kN, class T, Major kMajorA = Major::k, Major kMajorB = Major::k>
__forceinline__ void wgmma_m64k16(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t desc_b,
                                  bool accumulate) {
  static_assert(simt::wgmma_supports<kN, T>, "no such shape or type");
  static_assert(kMajorA == Major::k, "A in registers has no transposed form");
  simt::wgmma_register_a(d, kN, simt::kWgmmaFormat<T>, kMajorB == Major::mn, a, desc_b, accumulate);
}

template <int kN>
__forceinline__ void wgmma_m64k32_e4m3(float (&d)[kN / 2], uint64_t desc_a, uint64_t desc_b,
                                       bool accumulate) {
  static_assert(kN == 64 || kN == 128 || kN == 256, "64, 128 or 256 columns");
  simt::wgmma_shared_a(d, kN, simt::Format::e4m3, false, false, desc_a, desc_b, accumulate);
}

}  // namespace cookbook
