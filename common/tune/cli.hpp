// SPDX-License-Identifier: MIT
/// @file
/// What a person types: tune, merge, replay - and the tables they read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tune/tuner.hpp"

namespace cookbook::tune {

/// Handles `tune`, `merge` and `replay` as the first argument; nothing for other
/// command lines. The result is the exit status: 0, 1 when something failed, 2 for bad usage.
///
///   tune [--kernel K] [--size 4096x4096x4096]... [--shard i/n] [--cache FILE]
///   merge OUT IN...
///   replay [--kernel K] [--recording FILE] [--json FILE]
std::optional<int> command(const std::vector<const Space*>& spaces, int argc, char** argv);

/// Tunes `space` for one size where the cache has nothing, and prints what it found; else prints
/// the entry. Returns false when no configuration is right.
bool tune_and_print(const Space& space, const Size& size, const TuneOptions& options,
                    const Cache& cache);

/// How a searcher did on a recording: looks until its best is within 2 % of the best there is.
struct SearcherScore {
  std::string name;
  double median_looks = 0, worst_looks = 0;
  /// Mean slowdown (best so far over best of all, by medians of all recorded samples) after 1, 2
  /// ... looks: the curve of the figure.
  std::vector<double> slowdown;
};
std::vector<SearcherScore> score_searchers(const Space& space, const Recording& recording,
                                           int seeds = 25);

/// Geometric means over the recording's shapes.
struct Verdicts {
  double tuned_over_fixed = 0, worst_over_fixed = 0;    ///< training shapes
  double held_out_over_fixed = 0, worst_held_out = 0;   ///< held-out shapes
  double tuned_over_default = 0, model_over_fixed = 0;  ///< all shapes
  double tuned_over_library = 0;                        ///< 0 where no library was recorded
  std::size_t fixed = 0;
};
Verdicts judge(const Space& space, const Recording& recording);

/// Prints a recording: every shape's winner against the default, the best fixed configuration and
/// the library, the survivors, the searchers compared.
void print_replay(const Space& space, const Recording& recording);

}  // namespace cookbook::tune
