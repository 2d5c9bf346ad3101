// SPDX-License-Identifier: MIT
/// @file
/// Where a warp is in a pipeline: the stage, and the phase of its barriers.
#pragma once

#include "common/device/cuda.cuh"

namespace cookbook {

/// A place in a ring of kStages stages, which are used one after the other and then again: the
/// stage, and the parity of the phase that its barriers are in.
template <int kStages>
struct StageCursor {
  int stage = 0;
  uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  /// Advances by `count` steps.
  __device__ __forceinline__ void advance(int count) {
    stage += count;
    phase ^= static_cast<uint32_t>(stage / kStages) & 1;
    stage %= kStages;
  }
};

}  // namespace cookbook
