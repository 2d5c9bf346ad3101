// SPDX-License-Identifier: MIT
// Exercise 4.2, a kernel with a planted bug: level 3, but "the earlier a copy starts, the better".
//
// With COOKBOOK_SIMT_ASYNC=late every size passes; with early, most fail. The race detector names
// two lines. Which thread's read races with which copy? Repair it without a second barrier (the
// grader does not check this). Mind the wait: it counts groups, and moving a commit changes the
// count.
#pragma once

#include "chapters/04_double_buffering/level_3_multistage.cuh"

namespace cookbook::sgemm {

struct EarlyFillConfig : MultistageConfig {
  /// As in level 3: waits until the next tile may be read, and starts to copy the tile of the steps
  /// from k0 on into the stage that is free then.
  template <class C, class Copy, class StageA, class StageB>
  static __device__ __forceinline__ void next_tile(Copy& copy, StageA& a_free, StageB& b_free,
                                                   int k0) {
    copy(a_free, b_free, k0);
    cp_async_commit();
    cp_async_wait<C::kStages - 1>();  // this thread's pieces of this tile have arrived
    __syncthreads();                  // all threads' pieces have arrived
  }
};

struct EarlyFill : MultistageLevel<EarlyFillConfig> {
  static constexpr LevelText text{
      .name = "early_fill",
      .changed = "the next copies start before the barrier, to give them more time; has a bug",
      .expect = "right under all three schedules of the SIMT backend, once repaired",
      .cost = "as much shared memory as multistage",
  };

  static Claims claims(const Problem&) { return copy_claims({shared_loads().conflict_free()}); }
};

}  // namespace cookbook::sgemm
