// SPDX-License-Identifier: MIT
/// @file
/// What the device headers share on the CUDA side: which instructions the architecture being
/// compiled has, and shared-memory addresses. Kernels do not need this header.
#pragma once

#include "common/device/cuda.cuh"

#if defined(__CUDACC__)

// Every kernel is compiled for every architecture of the build, also for those it is never
// launched on. There, an instruction that does not exist becomes a trap.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define COOKBOOK_ASM_SM80(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM80(...) __trap()
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define COOKBOOK_ASM_SM89(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM89(...) __trap()
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define COOKBOOK_ASM_SM90(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM90(...) __trap()
#endif

// wgmma and setmaxnreg exist only in the architecture-specific target sm_90a.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define COOKBOOK_ASM_SM90A(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM90A(...) __trap()
#endif

namespace cookbook {

/// Address of `pointer` within the shared state space, as the instructions with `.shared` take it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace cookbook

#endif
