// SPDX-License-Identifier: MIT
// Level 2: the configuration that was fastest for this shape on this GPU, found once and cached.
#pragma once

#include "chapters/11_autotuning/tuner/levels.hpp"

namespace cookbook::autotuning {

inline LevelEntry tuned(const tune::Space& space) {
  const LevelText text{
      .name = "tuned",
      .changed = "chosen by a search on this GPU for this shape; remembered in the user's cache",
      .expect = "never slower than the best fixed one beyond noise; faster where shapes differ",
      .cost = "every survivor in the binary; seconds, once per shape",
  };
  return tune::level_over(
      space, text,
      // [quote tuned]
      [&space](const AnyProblem& problem, const DevicePointers& at) {
        return tune::with_fallbacks(tune::decide(space, problem, at).candidate, space, problem);
      },
      // [end quote]
      {at_least_previous(0.98, "the best fixed configuration may be this shape's best as well")});
}

}  // namespace cookbook::autotuning
