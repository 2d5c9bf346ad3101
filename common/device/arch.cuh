// SPDX-License-Identifier: MIT
/// @file
/// Shared by the device headers on the CUDA side: the instructions of the architecture that is
/// being compiled, and shared-memory addresses. Kernels do not need this header.
#pragma once

#include "common/device/cuda.cuh"

#if defined(__CUDACC__)

// Every kernel is compiled for every architecture of the build, also for those on which it is never
// launched. There, an instruction that does not exist becomes a trap.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define COOKBOOK_ASM_SM80(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM80(...) __trap()
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define COOKBOOK_ASM_SM90(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM90(...) __trap()
#endif

// setmaxnreg exists in the architecture-specific targets from Hopper on.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM103_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define COOKBOOK_HAS_SETMAXNREG
#endif

// wgmma exists only in the architecture-specific target sm_90a.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define COOKBOOK_ASM_SM90A(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM90A(...) __trap()
#endif

// tcgen05 exists in the architecture-specific targets of sm_100 and sm_103.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define COOKBOOK_ASM_SM100A(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM100A(...) __trap()
#endif

namespace cookbook {

/// Address of `pointer` within the shared state space, as instructions with `.shared` need it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace cookbook

#endif
