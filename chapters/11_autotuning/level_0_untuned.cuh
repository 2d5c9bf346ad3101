// SPDX-License-Identifier: MIT
// Level 0: one configuration, chosen by the author of the kernel.
#pragma once

#include "chapters/11_autotuning/tuner/levels.hpp"

namespace cookbook::autotuning {

/// The first configuration of the space that supports the problem.
inline LevelEntry untuned(const tune::Space& space) {
  const LevelText text{
      .name = "untuned",
      .changed = "nothing: the configuration its author would have picked",
      .expect = "right everywhere, best somewhere",
      .cost = "one kernel in the binary",
  };
  // [quote untuned]
  return tune::level_over(space, text, [&space](const AnyProblem& problem, const DevicePointers&) {
    return tune::require_legal(space, problem, device_info());
  });
  // [end quote]
}

}  // namespace cookbook::autotuning
