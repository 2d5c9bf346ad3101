// SPDX-License-Identifier: MIT
// Exercise 4.1, a kernel with a hole: five stages. The waits are missing.
//
// cp_async_wait<n> returns when at most the n latest groups of this thread are still in flight.
// Count the groups that have been committed when tile t is about to be read, and write the wait and
// the barrier where they belong. wait<0> gives right results too, but no overlap: the grader times
// nothing and accepts it, but you should not. Then make it three stages by changing one number.
#pragma once

#include "chapters/04_double_buffering/level_3_multistage.cuh"

namespace cookbook::sgemm {

struct CountedStagesConfig : MultistageConfig {
  static constexpr int kStages = 5;

  /// As in level 3: waits until the next tile may be read, and starts to copy the tile of the steps
  /// from k0 on into the stage that is free then.
  template <class C, class Copy, class StageA, class StageB>
  static __device__ __forceinline__ void next_tile(Copy& copy, StageA& a_free, StageB& b_free,
                                                   int k0) {
    // Your code here: the next tile must be complete, and no thread may still need what is in the
    // free stage.
    copy(a_free, b_free, k0);
    cp_async_commit();
  }
};

struct CountedStages : MultistageLevel<CountedStagesConfig> {
  static constexpr LevelText text{
      .name = "stages",
      .changed = "five stages, counted by you",
      .expect = "right under all three schedules of the SIMT backend: late, early and random",
      .cost = "41 KB of shared memory",
  };

  static Claims claims(const Problem&) { return copy_claims({shared_loads().conflict_free()}); }
};

}  // namespace cookbook::sgemm
