// SPDX-License-Identifier: MIT
/// @file
/// Hopper's tensor-core instructions of one warpgroup: four warps, the first one's index a multiple
/// of four, all 128 threads calling together; sm_90a (PTX ISA, "Asynchronous Warpgroup Level Matrix
/// Instructions").
///
/// Fragment layouts, with w = warp % 4, g = lane / 4, t = lane % 4:
///
///     d[4j + 0], d[4j + 1] = D[16w + g    ][8j + 2t, +1]        j = 0 .. N / 8 - 1
///     d[4j + 2], d[4j + 3] = D[16w + g + 8][8j + 2t, +1]
///     A from registers: as for mma_m16n8k16, with rows 16w .. 16w + 15. So d of 16 columns, packed
///     to 16 bits in pairs, is an A operand: a[0] = d[0, 1], a[1] = d[2, 3], a[2] = d[4, 5], ...
///
/// The sequence of calls: wgmma_fence(), the wgmma, wgmma_commit(). Then wgmma_wait<...>(), before
/// the accumulators are read or the operands in shared memory are overwritten.
#pragma once

#include <type_traits>

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"
#include "common/device/swizzle.cuh"

namespace cookbook {

/// Which index of an operand is contiguous in shared memory: k ("K-major": A stored M x K, B stored
/// N x K), or mn (A stored K x M, B stored K x N).
enum class Major : int { k = 0, mn = 1 };

}  // namespace cookbook

#if !defined(__CUDACC__)
#include "common/backend/simt/units/wgmma.hpp"
#else
#include "common/device/timeline.cuh"

namespace cookbook {

/// Describes an operand in shared memory (PTX ISA, "Matrix descriptor" and "Strides").
///
/// Operands are made of groups of eight rows, one swizzle span (16, 32, 64, 128 bytes) wide.
///   Major::k: a row is an m (or n), the span runs along k. `stride_bytes`: from eight rows to the
///     next eight; 1,024 for a b128 tile. `leading_bytes`: only Swizzle::none, from 8 columns of k
///     to the next 8.
///   Major::mn: a row is a k, the span runs along m (or n). `stride_bytes`: from eight k to the
///     next eight. `leading_bytes`: from one span of m (or n) to the next. (Swizzle::none: the
///     other way round.)
/// `smem`: 16-byte aligned. The pattern of a swizzle follows the bits of the address, so a tile is
/// aligned to eight spans (b128: 1,024 bytes), and wgmma_descriptor_advance moves within it.
template <Swizzle kSwizzle>
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* smem, uint32_t leading_bytes,
                                                     uint32_t stride_bytes) {
  // Layout type, bits 62..63: 0 none, 1 128-byte, 2 64-byte, 3 32-byte.
  constexpr uint64_t kLayout = kSwizzle == Swizzle::none ? 0 : 4 - static_cast<uint64_t>(kSwizzle);
  return static_cast<uint64_t>((shared_address(smem) & 0x3ffff) >> 4) |
         static_cast<uint64_t>((leading_bytes & 0x3ffff) >> 4) << 16 |
         static_cast<uint64_t>((stride_bytes & 0x3ffff) >> 4) << 32 | kLayout << 62;
}

/// The descriptor `bytes` (a multiple of 16) further on; a step of 16 k in a Major::k operand is
/// 32.
__device__ __forceinline__ uint64_t wgmma_descriptor_advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// Orders earlier register accesses before the warpgroup's next wgmma (PTX ISA, "wgmma.fence"):
/// needed before the first, and whenever accumulators or A registers were accessed since.
__device__ __forceinline__ void wgmma_fence() {
  COOKBOOK_ASM_SM90A("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes the group of all wgmma since the last commit (PTX ISA, "wgmma.commit_group").
__device__ __forceinline__ void wgmma_commit() {
  timeline::moment(timeline::Kind::commit_wgmma);
  COOKBOOK_ASM_SM90A("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most the `kPendingGroups` latest groups are in flight (PTX ISA,
/// "wgmma.wait_group").
template <int kPendingGroups>
__device__ __forceinline__ void wgmma_wait() {
  static_assert(kPendingGroups >= 0 && kPendingGroups <= 7, "0..7 groups");
  timeline::begin(timeline::Kind::wait_wgmma, 0, kPendingGroups);
  COOKBOOK_ASM_SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(kPendingGroups) : "memory");
  timeline::end(timeline::Kind::wait_wgmma, 0, kPendingGroups);
}

/// Keeps the compiler from moving accesses to `registers` across this point; no instruction. Place
/// one on the accumulators before the first wgmma of a batch and after its wait.
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

/// As above, for the accumulators of several wgmma.
template <int kRows, int kCount>
__device__ __forceinline__ void wgmma_fence_operand(float (&registers)[kRows][kCount]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) wgmma_fence_operand(registers[i]);
}

/// As above, for the A registers of the register form.
template <int kCount>
__device__ __forceinline__ void wgmma_fence_operand(uint32_t (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

// Operand lists: COOKBOOK_REGS_n is the text "%0, ..., %(n-1)", COOKBOOK_ACC_n(i) the accumulators
// d[i] .. d[i + n - 1].
#define COOKBOOK_REGS_4 "%0, %1, %2, %3"
#define COOKBOOK_REGS_8 COOKBOOK_REGS_4 ", %4, %5, %6, %7"
#define COOKBOOK_REGS_16 COOKBOOK_REGS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define COOKBOOK_REGS_32 \
  COOKBOOK_REGS_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define COOKBOOK_REGS_48 \
  COOKBOOK_REGS_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define COOKBOOK_REGS_56 COOKBOOK_REGS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define COOKBOOK_REGS_64 \
  COOKBOOK_REGS_48       \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define COOKBOOK_REGS_72 COOKBOOK_REGS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define COOKBOOK_REGS_80 \
  COOKBOOK_REGS_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define COOKBOOK_REGS_88 COOKBOOK_REGS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define COOKBOOK_REGS_96 COOKBOOK_REGS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define COOKBOOK_REGS_104 COOKBOOK_REGS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define COOKBOOK_REGS_112 COOKBOOK_REGS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define COOKBOOK_REGS_120 COOKBOOK_REGS_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define COOKBOOK_REGS_128 COOKBOOK_REGS_120 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define COOKBOOK_ACC_4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define COOKBOOK_ACC_8(i) COOKBOOK_ACC_4(i), COOKBOOK_ACC_4((i) + 4)
#define COOKBOOK_ACC_16(i) COOKBOOK_ACC_8(i), COOKBOOK_ACC_8((i) + 8)
#define COOKBOOK_ACC_32(i) COOKBOOK_ACC_16(i), COOKBOOK_ACC_16((i) + 16)
#define COOKBOOK_ACC_48(i) COOKBOOK_ACC_32(i), COOKBOOK_ACC_16((i) + 32)
#define COOKBOOK_ACC_56(i) COOKBOOK_ACC_48(i), COOKBOOK_ACC_8((i) + 48)
#define COOKBOOK_ACC_64(i) COOKBOOK_ACC_32(i), COOKBOOK_ACC_32((i) + 32)
#define COOKBOOK_ACC_72(i) COOKBOOK_ACC_64(i), COOKBOOK_ACC_8((i) + 64)
#define COOKBOOK_ACC_80(i) COOKBOOK_ACC_64(i), COOKBOOK_ACC_16((i) + 64)
#define COOKBOOK_ACC_88(i) COOKBOOK_ACC_80(i), COOKBOOK_ACC_8((i) + 80)
#define COOKBOOK_ACC_96(i) COOKBOOK_ACC_64(i), COOKBOOK_ACC_32((i) + 64)
#define COOKBOOK_ACC_104(i) COOKBOOK_ACC_96(i), COOKBOOK_ACC_8((i) + 96)
#define COOKBOOK_ACC_112(i) COOKBOOK_ACC_96(i), COOKBOOK_ACC_16((i) + 96)
#define COOKBOOK_ACC_120(i) COOKBOOK_ACC_112(i), COOKBOOK_ACC_8((i) + 112)
#define COOKBOOK_ACC_128(i) COOKBOOK_ACC_64(i), COOKBOOK_ACC_64((i) + 64)

// One wgmma. n: columns; r: accumulators, n / 2; i0 ..: the numbers of the operands after the
// accumulators, which are r, r + 1, ... The predicate is "scale-d": false means d = a * b.
#define COOKBOOK_WGMMA_SHARED_A(n, r, type, i0, i1, i2, i3, i4)                              \
  COOKBOOK_ASM_SM90A("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2                                \
                     ", 0;\n"                                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type         \
                     " "                                                                     \
                     "{" COOKBOOK_REGS_##r "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4 \
                                           ";\n}"                                            \
                     : COOKBOOK_ACC_##r(0)                                                   \
                     : "l"(desc_a), "l"(desc_b), "r"(static_cast<int>(accumulate)),          \
                       "n"(static_cast<int>(kMajorA)), "n"(static_cast<int>(kMajorB)))

#define COOKBOOK_WGMMA_REGISTER_A(n, r, type, i0, i1, i2, i3, i4, i5, i6)                       \
  COOKBOOK_ASM_SM90A("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5                                   \
                     ", 0;\n"                                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type            \
                     " "                                                                        \
                     "{" COOKBOOK_REGS_##r "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 \
                                           ", p, 1, 1, %" #i6 ";\n}"                            \
                     : COOKBOOK_ACC_##r(0)                                                      \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc_b),                 \
                       "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kMajorB)))

#define COOKBOOK_WGMMA_SHAPE(form, n, r, ...)               \
  if constexpr (kN == n) {                                  \
    if constexpr (std::is_same_v<T, bf16>) {                \
      COOKBOOK_WGMMA_##form##_A(n, r, "bf16", __VA_ARGS__); \
    } else {                                                \
      COOKBOOK_WGMMA_##form##_A(n, r, "f16", __VA_ARGS__);  \
    }                                                       \
  }

namespace detail {

template <int kN, class T>
inline constexpr bool wgmma_supports = (std::is_same_v<T, bf16> || std::is_same_v<T, half>)&&(
    kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 96 || kN == 112 || kN == 128 ||
    kN == 144 || kN == 160 || kN == 176 || kN == 192 || kN == 208 || kN == 224 || kN == 240 ||
    kN == 256);

}  // namespace detail

/// d = a * b (+ d if `accumulate`), 64 x kN x 16, T = bf16 or half, fp32 accumulators, both
/// operands in shared memory (PTX ISA, "wgmma.mma_async").
template <int kN, class T, Major kMajorA = Major::k, Major kMajorB = Major::k>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[kN / 2], uint64_t desc_a, uint64_t desc_b,
                                             bool accumulate) {
  static_assert(detail::wgmma_supports<kN, T>, "no such shape or type");
  COOKBOOK_WGMMA_SHAPE(SHARED, 8, 4, 4, 5, 6, 7, 8)
  COOKBOOK_WGMMA_SHAPE(SHARED, 16, 8, 8, 9, 10, 11, 12)
  COOKBOOK_WGMMA_SHAPE(SHARED, 32, 16, 16, 17, 18, 19, 20)
  COOKBOOK_WGMMA_SHAPE(SHARED, 64, 32, 32, 33, 34, 35, 36)
  COOKBOOK_WGMMA_SHAPE(SHARED, 96, 48, 48, 49, 50, 51, 52)
  COOKBOOK_WGMMA_SHAPE(SHARED, 112, 56, 56, 57, 58, 59, 60)
  COOKBOOK_WGMMA_SHAPE(SHARED, 128, 64, 64, 65, 66, 67, 68)
  COOKBOOK_WGMMA_SHAPE(SHARED, 144, 72, 72, 73, 74, 75, 76)
  COOKBOOK_WGMMA_SHAPE(SHARED, 160, 80, 80, 81, 82, 83, 84)
  COOKBOOK_WGMMA_SHAPE(SHARED, 176, 88, 88, 89, 90, 91, 92)
  COOKBOOK_WGMMA_SHAPE(SHARED, 192, 96, 96, 97, 98, 99, 100)
  COOKBOOK_WGMMA_SHAPE(SHARED, 208, 104, 104, 105, 106, 107, 108)
  COOKBOOK_WGMMA_SHAPE(SHARED, 224, 112, 112, 113, 114, 115, 116)
  COOKBOOK_WGMMA_SHAPE(SHARED, 240, 120, 120, 121, 122, 123, 124)
  COOKBOOK_WGMMA_SHAPE(SHARED, 256, 128, 128, 129, 130, 131, 132)
}

/// As above with A in registers. `a` must not be changed before wgmma_wait for this wgmma.
template <int kN, class T, Major kMajorA = Major::k, Major kMajorB = Major::k>
__device__ __forceinline__ void wgmma_m64k16(float (&d)[kN / 2], const uint32_t (&a)[4],
                                             uint64_t desc_b, bool accumulate) {
  static_assert(detail::wgmma_supports<kN, T>, "no such shape or type");
  static_assert(kMajorA == Major::k, "A in registers has no transposed form");
  COOKBOOK_WGMMA_SHAPE(REGISTER, 8, 4, 4, 5, 6, 7, 8, 9, 10)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 16, 8, 8, 9, 10, 11, 12, 13, 14)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 32, 16, 16, 17, 18, 19, 20, 21, 22)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 64, 32, 32, 33, 34, 35, 36, 37, 38)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 96, 48, 48, 49, 50, 51, 52, 53, 54)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 112, 56, 56, 57, 58, 59, 60, 61, 62)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 128, 64, 64, 65, 66, 67, 68, 69, 70)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 144, 72, 72, 73, 74, 75, 76, 77, 78)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 160, 80, 80, 81, 82, 83, 84, 85, 86)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 176, 88, 88, 89, 90, 91, 92, 93, 94)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 192, 96, 96, 97, 98, 99, 100, 101, 102)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 208, 104, 104, 105, 106, 107, 108, 109, 110)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 224, 112, 112, 113, 114, 115, 116, 117, 118)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 240, 120, 120, 121, 122, 123, 124, 125, 126)
  COOKBOOK_WGMMA_SHAPE(REGISTER, 256, 128, 128, 129, 130, 131, 132, 133, 134)
}

#define COOKBOOK_WGMMA_E4M3(n, r, i0, i1, i2)                                          \
  if constexpr (kN == n) {                                                             \
    COOKBOOK_ASM_SM90A("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2                        \
                       ", 0;\n"                                                        \
                       "wgmma.mma_async.sync.aligned.m64n" #n                          \
                       "k32.f32.e4m3.e4m3 "                                            \
                       "{" COOKBOOK_REGS_##r "}, %" #i0 ", %" #i1 ", p, 1, 1;\n}"      \
                       : COOKBOOK_ACC_##r(0)                                           \
                       : "l"(desc_a), "l"(desc_b), "r"(static_cast<int>(accumulate))); \
  }

/// d = a * b (+ d if `accumulate`), 64 x kN x 32, FP8 e4m3 operands in shared memory, Major::k
/// only; kN = 64, 128 or 256. The hardware accumulates with fewer bits than fp32.
template <int kN>
__device__ __forceinline__ void wgmma_m64k32_e4m3(float (&d)[kN / 2], uint64_t desc_a,
                                                  uint64_t desc_b, bool accumulate) {
  static_assert(kN == 64 || kN == 128 || kN == 256, "64, 128 or 256 columns");
  COOKBOOK_WGMMA_E4M3(64, 32, 32, 33, 34)
  COOKBOOK_WGMMA_E4M3(128, 64, 64, 65, 66)
  COOKBOOK_WGMMA_E4M3(256, 128, 128, 129, 130)
}

#undef COOKBOOK_WGMMA_E4M3
#undef COOKBOOK_WGMMA_SHAPE
#undef COOKBOOK_WGMMA_REGISTER_A
#undef COOKBOOK_WGMMA_SHARED_A

}  // namespace cookbook

#endif
