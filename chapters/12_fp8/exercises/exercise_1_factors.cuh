// SPDX-License-Identifier: MIT
// Exercise 12.1, a hole: which scales a thread needs. The stage holds the scales of the tile's rows
// of A; as it stands every element is multiplied by B's scale only. wgmma.cuh says which rows of D
// a thread has.
#pragma once

#include "chapters/12_fp8/exercise_level.hpp"

namespace cookbook::fp8 {

namespace exercise_factors {

struct StagedScales : scales_by_tma::ScalesByTma {
  template <int kMmaM>
  struct Factors : scales_by_tma::ScalesByTma::Factors<kMmaM> {
    /// row[i][h]: the factor of the thread's elements in the i-th 64 rows of its warpgroup, upper
    /// (h = 0) and lower (h = 1) eight of its warp's 16. staged: the scales of the tile's rows of
    /// A; first_row: the first of the thread's rows in the tile.
    __device__ __forceinline__ void read(const float* /*staged*/, int /*first_row*/) {
#pragma unroll
      for (int i = 0; i < kMmaM; ++i) {
        this->row[i][0] = this->b;  // yours
        this->row[i][1] = this->b;  // yours
      }
    }
  };
};

struct Config : scales_by_tma::Config {
  using Scales = StagedScales;
};

}  // namespace exercise_factors

struct ExerciseFactors : ExerciseLevel<exercise_factors::Config> {
  static constexpr LevelText text{
      .name = "exercise_factors",
      .changed = "level 3 without A's scales",
      .expect = "each element multiplied by both of its scales, without a load from global memory",
      .ladder = "fp8",
  };
};

}  // namespace cookbook::fp8
