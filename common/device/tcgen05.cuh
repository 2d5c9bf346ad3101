// SPDX-License-Identifier: MIT
/// @file
/// The tensor core of sm_100a and its tensor memory (PTX ISA, "TensorCore 5th Generation Family
/// Instructions").
///
/// Tensor memory: 128 lanes of 512 columns of 32 bits per SM. An address is lane << 16 | column.
/// Warp w reaches lanes 32 (w % 4) .. + 31 only. A 128 x N fp32 accumulator is row m in lane m,
/// column n in column n.
///
/// One thread starts tcgen05_mma, tcgen05_copy_scales and tcgen05_commit; they are asynchronous.
/// Those of one thread run in order; nothing else is ordered unless
///
///     tcgen05_commit(bar)  the barrier gets one arrival when all of them are complete
///     tmem_wait_load()     this warp's tmem_load are complete
///     tcgen05_fence_*      around a barrier of threads that carries order to other threads
///
/// kPair = 2: an instruction for the two blocks of a pair, the ranks 2i and 2i + 1 of a cluster.
/// Addresses in tensor memory and offsets in shared memory are the same in both. One thread of the
/// even block starts it. Every tcgen05 instruction of a kernel has the same kPair.
#pragma once

#include <type_traits>

#include "common/device/arch.cuh"
#include "common/device/cluster.cuh"
#include "common/device/cuda.cuh"
#include "common/device/swizzle.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/tcgen05.hpp"
#endif

namespace cookbook {

/// Elements of A and B.
enum class Tcgen05Element { f16, bf16, e4m3, e2m1 };

namespace detail {

template <Tcgen05Element kElement>
inline constexpr bool is_scaled =
    kElement == Tcgen05Element::e4m3 || kElement == Tcgen05Element::e2m1;

/// The address of `smem` as a descriptor has it: of the block's own shared memory.
__device__ __forceinline__ uint64_t descriptor_address(const void* smem) {
#if defined(__CUDACC__)
  return static_cast<uint64_t>(shared_address(smem) & 0x3ffff) >> 4;
#else
  return static_cast<uint64_t>(simt::shared_address(smem) & 0x3ffff) >> 4;
#endif
}

}  // namespace detail

/// Describes an operand in shared memory (PTX ISA, "Shared memory descriptor"): start, leading and
/// stride bytes as wgmma_descriptor has them, with another code of the layout and a version of 1.
template <Swizzle kSwizzle>
__device__ __forceinline__ uint64_t tcgen05_descriptor(const void* smem, uint32_t leading_bytes,
                                                       uint32_t stride_bytes) {
  // Layout type, bits 61..63: 0 none, 2 128-byte, 4 64-byte, 6 32-byte.
  constexpr uint64_t kLayout =
      kSwizzle == Swizzle::none ? 0 : 8 - 2 * static_cast<uint64_t>(kSwizzle);
  return detail::descriptor_address(smem) | static_cast<uint64_t>(leading_bytes >> 4) << 16 |
         static_cast<uint64_t>(stride_bytes >> 4) << 32 | uint64_t{1} << 46 | kLayout << 61;
}

/// The descriptor `bytes` (a multiple of 16) further on.
__device__ __forceinline__ uint64_t tcgen05_descriptor_advance(uint64_t descriptor,
                                                               uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

/// Describes a multiplication kM x kN with fp32 accumulators (PTX ISA, "Instruction descriptor").
/// kM: 128; of a pair 256. Of the block-scaled kinds (e4m3: MXFP8, e2m1: NVFP4) both operands are
/// Major::k.
template <Tcgen05Element kElement, int kM, int kN, Major kMajorA = Major::k,
          Major kMajorB = Major::k>
__host__ __device__ constexpr uint32_t tcgen05_instruction() {
  static_assert(kM == 128 || kM == 256, "rows");
  static_assert(kN >= 16 && kN <= 256 && kN % 16 == 0, "columns");
  constexpr uint32_t kColumns = static_cast<uint32_t>(kN) >> 3 << 17;
  if constexpr (detail::is_scaled<kElement>) {
    static_assert(kMajorA == Major::k && kMajorB == Major::k, "k is contiguous");
    constexpr bool kIsMx = kElement == Tcgen05Element::e4m3;
    // Bits 7 and 10: the elements. 23: scales are UE8M0, not UE4M3. 27, 28: rows / 128.
    return (kIsMx ? 0u : 1u << 7 | 1u << 10) | kColumns | (kIsMx ? 1u << 23 : 0u) |
           static_cast<uint32_t>(kM) >> 7 << 27;
  } else {
    constexpr uint32_t kType = kElement == Tcgen05Element::bf16 ? 1 : 0;
    return 1u << 4 | kType << 7 | kType << 10 | static_cast<uint32_t>(kMajorA) << 15 |
           static_cast<uint32_t>(kMajorB) << 16 | kColumns | static_cast<uint32_t>(kM) >> 4 << 24;
  }
}

#if !defined(__CUDACC__)

template <int kPair = 1>
__forceinline__ void tmem_alloc(uint32_t* smem, int columns) {
  simt::tmem_alloc(smem, static_cast<uint32_t>(columns), kPair);
}
template <int kPair = 1>
__forceinline__ void tmem_relinquish() {
  simt::tmem_relinquish(kPair);
}
template <int kPair = 1>
__forceinline__ void tmem_dealloc(uint32_t address, int columns) {
  simt::tmem_dealloc(address, static_cast<uint32_t>(columns), kPair);
}
__forceinline__ void tmem_load(float (&values)[32], uint32_t address) {
  simt::tmem_load(reinterpret_cast<uint32_t*>(values), address, simt::TmemShape::s32x32b, 32);
}
__forceinline__ void tmem_wait_load(float (&)[32]) { simt::tmem_wait_load(); }

template <Tcgen05Element kElement, int kPair = 1>
__forceinline__ void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                 bool accumulate) {
  static_assert(!detail::is_scaled<kElement>, "has scales");
  simt::tcgen05_mma(d, a, b, instruction, accumulate, {simt::MmaKind::f16, kPair});
}
template <Tcgen05Element kElement>
__forceinline__ void tcgen05_mma_scaled(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction,
                                        uint32_t scale_a, uint32_t scale_b, bool accumulate) {
  static_assert(detail::is_scaled<kElement>, "has no scales");
  constexpr bool kIsMx = kElement == Tcgen05Element::e4m3;
  simt::tcgen05_mma_scaled(
      d, a, b, instruction, scale_a, scale_b, accumulate,
      {kIsMx ? simt::MmaKind::mxf8f6f4 : simt::MmaKind::mxf4nvf4, 1, kIsMx ? 1 : 4});
}
__forceinline__ void tcgen05_copy_scales(uint32_t address, uint64_t source) {
  simt::tcgen05_cp(address, source, simt::TmemCopy::c32x128b, 1);
}
__forceinline__ void tcgen05_commit(uint64_t* bar) { simt::tcgen05_commit(bar, 1); }
__forceinline__ void tcgen05_commit_pair(uint64_t* bar) {
  simt::tcgen05_commit_multicast(bar, 3, 2);
}
__forceinline__ void tcgen05_fence_before_thread_sync() {
  simt::tcgen05_fence_before_thread_sync();
}
__forceinline__ void tcgen05_fence_after_thread_sync() { simt::tcgen05_fence_after_thread_sync(); }

__forceinline__ void tma_load_2d_pair(void* smem, const TensorMap* map, uint64_t* bar, int x,
                                      int y) {
  simt::tma_load_pair(smem, map, map_shared(bar, cluster_block_rank() & ~1u), {x, y, 0, 0, 0}, 2);
}

#else

/// Allocates `columns` (32, 64, 128, 256 or 512) and writes the address to `smem`, with an ordinary
/// store: a barrier comes before other warps read it. Waits until as many are free. Called by a
/// whole warp; kPair = 2: by one of each block.
template <int kPair = 1>
__device__ __forceinline__ void tmem_alloc(uint32_t* smem, int columns) {
  COOKBOOK_ASM_SM100A("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                          shared_address(smem)),
                      "r"(columns), "n"(kPair)
                      : "memory");
}

/// This block allocates no more, so that another one may. Called by the warp that allocates.
template <int kPair = 1>
__device__ __forceinline__ void tmem_relinquish() {
  COOKBOOK_ASM_SM100A("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(kPair)
                      : "memory");
}

/// Frees what tmem_alloc gave, before the block ends. Called by the warp that allocated it.
template <int kPair = 1>
__device__ __forceinline__ void tmem_dealloc(uint32_t address, int columns) {
  COOKBOOK_ASM_SM100A("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address),
                      "r"(columns), "n"(kPair)
                      : "memory");
}

#define COOKBOOK_OUT_8(i)                                                               \
  "=f"(values[i]), "=f"(values[(i) + 1]), "=f"(values[(i) + 2]), "=f"(values[(i) + 3]), \
      "=f"(values[(i) + 4]), "=f"(values[(i) + 5]), "=f"(values[(i) + 6]), "=f"(values[(i) + 7])

/// values[i] = lane `lane of address + lane of the warp`, column i: 32 x 32 of a warp. The values
/// are there after tmem_wait_load(values). `address`: the first of this warp's lanes. Called by a
/// whole warp.
__device__ __forceinline__ void tmem_load(float (&values)[32], uint32_t address) {
  COOKBOOK_ASM_SM100A("tcgen05.ld.sync.aligned.32x32b.x32.b32 {" COOKBOOK_REGS_32 "}, [%32];"
                      : COOKBOOK_OUT_8(0), COOKBOOK_OUT_8(8), COOKBOOK_OUT_8(16), COOKBOOK_OUT_8(24)
                      : "r"(address));
}

#undef COOKBOOK_OUT_8

/// Waits for all tmem_load of this thread. `values`: of the latest one, so that the compiler uses
/// none before.
__device__ __forceinline__ void tmem_wait_load(float (&values)[32]) {
  COOKBOOK_ASM_SM100A("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

/// d = a b (+ d if `accumulate`): d in tensor memory, 16 k of both operands in shared memory.
template <Tcgen05Element kElement, int kPair = 1>
__device__ __forceinline__ void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b,
                                            uint32_t instruction, bool accumulate) {
  static_assert(!detail::is_scaled<kElement>, "has scales");
  COOKBOOK_ASM_SM100A(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<int>(accumulate)), "n"(kPair)
      : "memory");
}

#define COOKBOOK_TCGEN05_SCALED(KIND)                                                         \
  COOKBOOK_ASM_SM100A(                                                                        \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"                                             \
      "tcgen05.mma.cta_group::1.kind::" KIND " [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d), \
      "l"(a), "l"(b), "r"(instruction), "r"(scale_a), "r"(scale_b),                           \
      "r"(static_cast<int>(accumulate))                                                       \
      : "memory")

/// The same with a scale per row of A, per column of B, and per 32 k (e4m3, UE8M0; 32 k each) or 16
/// k (e2m1, UE4M3; 64 k each). `scale_a`, `scale_b`: columns of tensor memory with the scales, four
/// to a column; bits 4, 5 (B) and 29, 30 (A) of `instruction` say which byte is e4m3's.
template <Tcgen05Element kElement>
__device__ __forceinline__ void tcgen05_mma_scaled(uint32_t d, uint64_t a, uint64_t b,
                                                   uint32_t instruction, uint32_t scale_a,
                                                   uint32_t scale_b, bool accumulate) {
  static_assert(detail::is_scaled<kElement>, "has no scales");
  if constexpr (kElement == Tcgen05Element::e4m3) {
    COOKBOOK_TCGEN05_SCALED("mxf8f6f4.block_scale.scale_vec::1X");
  } else {
    COOKBOOK_TCGEN05_SCALED("mxf4nvf4.block_scale.scale_vec::4X");
  }
}

#undef COOKBOOK_TCGEN05_SCALED

/// Copies the scales of 128 rows, four per row, from shared to tensor memory: 32 rows of 16 bytes,
/// of which bytes 4q .. 4q + 3 of row r become column q of lane r, the same in all four quarters of
/// the lanes. `source`: tcgen05_descriptor<Swizzle::none>(smem, 0, 128). Ordered before the same
/// thread's later tcgen05_mma (PTX ISA, "tcgen05.cp", `.32x128b.warpx4`).
__device__ __forceinline__ void tcgen05_copy_scales(uint32_t address, uint64_t source) {
  COOKBOOK_ASM_SM100A("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(address), "l"(source)
                      : "memory");
}

/// `bar` gets one arrival when all earlier tcgen05_mma and copies of this thread are complete.
__device__ __forceinline__ void tcgen05_commit(uint64_t* bar) {
  COOKBOOK_ASM_SM100A(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
          shared_address(bar))
      : "memory");
}

/// The same of a pair that is a whole cluster: the barriers at `bar`'s offset in both blocks get
/// one.
__device__ __forceinline__ void tcgen05_commit_pair(uint64_t* bar) {
  COOKBOOK_ASM_SM100A(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(shared_address(bar)),
      "h"(static_cast<uint16_t>(3))
      : "memory");
}

/// What this thread started before comes before what others start after their
/// tcgen05_fence_after_thread_sync(), if a barrier between the two orders the threads.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  COOKBOOK_ASM_SM100A("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  COOKBOOK_ASM_SM100A("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// As tma_load_2d, but the bytes are signalled to the barrier at `bar`'s offset in the even block
/// of the pair. Bit 24 of a shared::cluster address is the lowest of the block's rank.
__device__ __forceinline__ void tma_load_2d_pair(void* smem, const TensorMap* map, uint64_t* bar,
                                                 int x, int y) {
  COOKBOOK_ASM_SM100A(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(smem)),
      "l"(map), "r"(shared_address(bar) & 0xfeffffffu), "r"(x), "r"(y)
      : "memory");
}

#endif

}  // namespace cookbook
