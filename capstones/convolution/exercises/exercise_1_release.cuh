// SPDX-License-Identifier: MIT
// Exercise 1: the level tma with the wrong barrier before a stage is overwritten. TMA may write the
// tile after next while other warps still read this one. Change what a block does before.
#pragma once

#include "../level_3_tma.cuh"

namespace cookbook::convolution {

struct ReleaseConfig : TmaConfig {
  /// Called by all threads of the block when they have read a stage: your part. Thread 0 starts the
  /// load that overwrites it as soon as it returns.
  static __device__ __forceinline__ void release_stage() { __syncwarp(); }
};

struct Release : Tma {
  static constexpr LevelText text{
      .name = "release",
      .changed = "your own barrier before a stage is overwritten",
      .expect = "right however early a copy lands",
      .cost = "one barrier per tile",
  };

  static void run(const Plan& plan, Stream stream) { run_as<ReleaseConfig>(plan, stream); }
};

}  // namespace cookbook::convolution
