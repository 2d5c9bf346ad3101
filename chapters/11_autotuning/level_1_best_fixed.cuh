// SPDX-License-Identifier: MIT
// Level 1: one configuration, chosen by measuring all of them over many shapes.
#pragma once

#include "chapters/11_autotuning/tuner/levels.hpp"

namespace cookbook::autotuning {

/// The configuration with the best geometric mean over the training shapes, as recorded on this
/// architecture. Without a recording: the one that the model predicts.
// [quote best_fixed]
inline std::size_t best_fixed_configuration(const tune::Space& space) {
  const DeviceInfo& device = device_info();
  if (const auto recording = tune::find_recording(space, device.cc())) {
    return tune::best_fixed(tune::recorded_times(space, *recording));
  }
  return tune::best_fixed(tune::predicted_times(space, device));
}
// [end quote]

inline LevelEntry best_fixed(const tune::Space& space) {
  const LevelText text{
      .name = "best_fixed",
      .changed = "the one configuration that does best over all training shapes",
      .expect = "what an honest author ships: it loses where shapes need different tiles",
      .cost = "one kernel in the binary, an afternoon of measuring",
  };
  return tune::level_over(space, text, [&space](const AnyProblem& problem, const DevicePointers&) {
    return tune::with_fallbacks(best_fixed_configuration(space), space, problem);
  });
}

}  // namespace cookbook::autotuning
