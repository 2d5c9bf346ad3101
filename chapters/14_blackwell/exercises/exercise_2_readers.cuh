// SPDX-License-Identifier: MIT
// Exercise 14.2, a planted bug: level 5 with one accumulator and two lines changed. Each block
// counts the warps that have read its own lanes. Which thread waits for which of the two barriers?
// Repair the two lines.
#pragma once

#include "chapters/14_blackwell/level_5_pairs.cuh"

namespace cookbook::gemm {

namespace exercise_readers {

struct Config : blackwell_pairs::Config {
  static constexpr int kAccumulators = 1;  // so that every tile overwrites the one before
  static constexpr int kStorers = 4;       // warps that read an accumulator

  /// This warp has read the accumulator.
  static __device__ __forceinline__ void release(uint64_t* stored) { mbarrier_arrive(stored); }
};

}  // namespace exercise_readers

struct ExerciseReaders : blackwell_pairs::LevelOn<exercise_readers::Config> {
  static constexpr LevelText text{
      .name = "exercise_readers",
      .changed = "level 5 with one accumulator, which each block releases on its own",
      .expect = "as level 5, as long as the other block stores as fast as this one",
  };

  static Claims claims(const Problem& p) { return counted(p, 2 * pairs(p), 256); }
  static void run(const Plan& plan, Stream stream) {
    launch_pairs(pairs(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
