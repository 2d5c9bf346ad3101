// SPDX-License-Identifier: MIT
// Exercise 12.2, a planted bug: level 3 with one index of B's scales wrong. Many a matrix does not
// show it. Find the smallest that does, and repair the line.
#pragma once

#include "chapters/12_fp8/exercise_level.hpp"

namespace cookbook::fp8 {

namespace exercise_weights {

struct WrongScales : scales_by_tma::ScalesByTma {
  template <int kMmaM>
  struct Factors : scales_by_tma::ScalesByTma::Factors<kMmaM> {
    __device__ __forceinline__ void fetch(const Scales& s, const Extents& e, int k_block,
                                          int /*first_row*/, int col) {
      const int blocks = ceil_div(e.n, kScaleBlock);
      this->b = col < e.n ? s.b[k_block * blocks + col / kScaleBlock] : 0.0f;
    }
  };
};

struct Config : scales_by_tma::Config {
  using Scales = WrongScales;
};

}  // namespace exercise_weights

struct ExerciseWeights : ExerciseLevel<exercise_weights::Config> {
  static constexpr LevelText text{
      .name = "exercise_weights",
      .changed = "level 3 with a mistake in where it finds B's scales",
      .expect = "the scale of the block of B that is being multiplied",
      .ladder = "fp8",
  };
};

}  // namespace cookbook::fp8
