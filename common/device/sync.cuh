// SPDX-License-Identifier: MIT
/// @file
/// Synchronisation of part of a block or of a grid, register reallocation.
#pragma once

#include <type_traits>

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/sync.hpp"
#else
#include "common/device/timeline.cuh"

namespace cookbook {

/// Barrier `id` (1..15; 0 is __syncthreads) over `threads` threads, a multiple of 32: returns when
/// this number of threads has called this or named_barrier_arrive (PTX ISA, "bar.sync"). Called by
/// whole warps.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  timeline::begin(timeline::Kind::wait_turn, static_cast<uint32_t>(id));
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
  timeline::end(timeline::Kind::wait_turn, static_cast<uint32_t>(id));
}

/// Counts this thread at barrier `id` without waiting (PTX ISA, "bar.arrive").
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// True in exactly one lane of the warp (PTX ISA, "elect.sync"). All 32 lanes must call.
__device__ __forceinline__ bool elect_one() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t elected;
  asm volatile(
      "{\n.reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(elected));
  return elected != 0;
#else
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane == 0;
#endif
}

/// Releases registers until each thread of this warpgroup has `kRegisters` (a multiple of 8,
/// 24..256). All warps of the warpgroup must call. ptxas must know the kernel's initial number of
/// registers, so the kernel needs `__launch_bounds__(threads, blocks)` (PTX ISA, "setmaxnreg",
/// sm_90a).
template <int kRegisters>
__device__ __forceinline__ void register_dealloc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24..256, step 8");
#if defined(COOKBOOK_HAS_SETMAXNREG)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

/// Waits until the pool has enough and raises each thread of this warpgroup to `kRegisters`.
template <int kRegisters>
__device__ __forceinline__ void register_alloc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24..256, step 8");
#if defined(COOKBOOK_HAS_SETMAXNREG)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

/// Reads a flag in global memory (4 or 8 bytes); afterwards the writes that its writer released are
/// visible (PTX ISA, "ld.acquire.gpu").
template <class T>
__device__ __forceinline__ T load_acquire(const T* address) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
  if constexpr (sizeof(T) == 4) {
    uint32_t bits;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(bits) : "l"(address) : "memory");
    return static_cast<T>(bits);
  } else {
    uint64_t bits;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(bits) : "l"(address) : "memory");
    return static_cast<T>(bits);
  }
}

/// Writes a flag in global memory (4 or 8 bytes) after all earlier writes of this thread (PTX ISA,
/// "st.release.gpu").
template <class T>
__device__ __forceinline__ void store_release(T* address, T value) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(static_cast<uint32_t>(value))
                 : "memory");
  } else {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(address), "l"(static_cast<uint64_t>(value))
                 : "memory");
  }
}

/// For a launch that is LaunchConfig::dependent: returns when the launch before it in the stream
/// has ended and its writes are visible. Every block must call it, and only then access global
/// memory. If one thread calls, the others' accesses must follow its own (PTX ISA,
/// "griddepcontrol.wait").
__device__ __forceinline__ void wait_for_previous_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Blocks of the next launch may start on resources that are free, once every block of this launch
/// has called this or ended. Affects a next launch that is dependent (PTX ISA,
/// "griddepcontrol.launch_dependents").
__device__ __forceinline__ void allow_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Lets other threads run inside a spin loop.
__device__ __forceinline__ void spin_pause() { __nanosleep(20); }

}  // namespace cookbook

#endif

namespace cookbook {

/// Spins until `*flag == value`, reading the flag with load_acquire. The blocks that set the flag
/// must be resident: by a cooperative launch, or because they started earlier.
template <class T>
__device__ __forceinline__ void spin_wait_until_equal(const T* flag, T value) {
  while (load_acquire(flag) != value) spin_pause();
}

}  // namespace cookbook
