// SPDX-License-Identifier: MIT
// Solution: all warps of the block have read the stage before it is overwritten.
#pragma once

#include "capstones/convolution/level_3_tma.cuh"

namespace cookbook::convolution {

struct ReleaseConfig : TmaConfig {
  static __device__ __forceinline__ void release_stage() { __syncthreads(); }
};

struct Release : Tma {
  static constexpr LevelText text{.name = "release", .changed = "a barrier of the block"};
  static void run(const Plan& plan, Stream stream) { run_as<ReleaseConfig>(plan, stream); }
};

namespace wrong {

/// A fence orders what one thread does. It waits for nobody.
struct FenceConfig : TmaConfig {
  static __device__ __forceinline__ void release_stage() {
    __threadfence_block();
    __syncwarp();
  }
};

struct Release : Tma {
  static constexpr LevelText text{.name = "release", .changed = "a fence, and no barrier"};
  static void run(const Plan& plan, Stream stream) { run_as<FenceConfig>(plan, stream); }
};

}  // namespace wrong
}  // namespace cookbook::convolution
