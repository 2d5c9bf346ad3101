// SPDX-License-Identifier: MIT
// Exercise 5.2, a planted bug: level 5 with one wrong line in its pipeline.
//
// It may well give the right answer on a GPU most of the time. Run it under each of the three
// schedules (COOKBOOK_SIMT_ASYNC=late, early, random), find out which guarantee is missing, and
// repair it. How many groups have been committed when tile t is about to be read, and how many may
// still be in flight?
#pragma once

#include "chapters/05_tensor_cores/level_5_multistage.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace exercise_pipeline {

struct Config : multistage::Config<bf16> {
  /// Waits until tile t may be read, and starts to copy the tile whose stage is free then.
  template <class C, class LoadStage>
  static __device__ __forceinline__ void next_tile(const LoadStage& load_stage, int t) {
    cp_async_wait<C::kStages - 1>();  // this thread's part of tile t has arrived
    __syncthreads();                  // every thread's has, and all have read tile t - 1
    load_stage(t + C::kStages - 1);   // so its stage may be filled again
  }
};

}  // namespace exercise_pipeline

struct ExercisePipeline : multistage::KernelLevel<exercise_pipeline::Config> {
  static constexpr LevelText text{
      .name = "exercise_pipeline",
      .changed = "level 5 with a mistake in its pipeline",
      .expect = "as level 5, as long as the copies happen to arrive in time",
  };

  static Claims claims(const Problem&) {
    return async_copy_claims({shared_loads().conflict_free()});
  }
};

}  // namespace cookbook::gemm
