// SPDX-License-Identifier: MIT
// level_wgmma.cuh's kernel for other element types than bf16.
#pragma once

#include "chapters/00_roofs/level_wgmma.cuh"
#include "chapters/00_roofs/types.hpp"

namespace cookbook::roofs {

__device__ __forceinline__ void wgmma_of(Tf32, float (&d)[128], uint64_t desc_a, uint64_t desc_b) {
  wgmma_m64n256k8_tf32(d, desc_a, desc_b);
}
__device__ __forceinline__ void wgmma_of(E4m3, float (&d)[128], uint64_t desc_a, uint64_t desc_b) {
  wgmma_m64k32_e4m3<256>(d, desc_a, desc_b, true);
}
__device__ __forceinline__ void wgmma_of(Int8, uint32_t (&d)[128], uint64_t desc_a,
                                         uint64_t desc_b) {
  wgmma_m64n256k32_s8(d, desc_a, desc_b);
}

template <class T>
struct WgmmaType : WgmmaLevel<T, WgmmaTypeProblem<T>, TypeBuffers<T>> {
  static constexpr LevelText text{
      .name = "wgmma_types",
      .changed = "wgmma of 64 x 256 on shared-memory operands, two warpgroups per SM",
      .expect = "tf32: half of bf16; e4m3 and int8: twice bf16",
      .cost = "128 accumulators per thread, 48 KB of shared memory",
  };
  static Support supports(const WgmmaTypeProblem<T>& problem, const DeviceInfo& device) {
    if (!std::is_same_v<T, E4m3> && !kTensorTypes) {
      return Support::no("the SIMT backend has no wgmma of this type");
    }
    return WgmmaLevel<T, WgmmaTypeProblem<T>, TypeBuffers<T>>::supports(problem, device);
  }
};

}  // namespace cookbook::roofs
