// SPDX-License-Identifier: MIT
/// @file
/// How a search looks at a configuration: through samples, taken now or replayed.
#pragma once

#include <string>
#include <vector>

namespace cookbook::tune {

/// Times of one configuration, one a round, in microseconds; NaN where a round has none.
struct Samples {
  std::vector<double> us;
  std::string failure;  ///< it did not launch: why; `us` is then empty
};

/// The source of samples. All configurations of a call are run once a round, so that whatever
/// drifts (clocks, temperature, a neighbour on the machine) hits all of them alike: sample r of one
/// pairs with sample r of another.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Brings clocks, caches and lazy loading to where they stay, by running `candidate`.
  virtual void warm_up(std::size_t candidate) = 0;
  virtual std::vector<Samples> time(const std::vector<std::size_t>& candidates, int rounds) = 0;
  /// The same as a ladder times its levels, for as many rounds as a ladder takes: what decides must
  /// see the GPU that a ladder sees, not the one that a search has made hot.
  virtual std::vector<Samples> time_as_ladder(const std::vector<std::size_t>& candidates) = 0;
};

}  // namespace cookbook::tune
