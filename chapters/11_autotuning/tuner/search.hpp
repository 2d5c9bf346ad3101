// SPDX-License-Identifier: MIT
/// @file
/// Searchers: which configuration to look at next. All see the space only through a Timer, so they
/// run on recordings as well as on a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chapters/11_autotuning/tuner/space.hpp"
#include "chapters/11_autotuning/tuner/timer.hpp"

namespace cookbook::tune {

/// What a search may choose among, and how much it may look.
struct Arena {
  const Space* space = nullptr;
  std::vector<std::size_t> candidates;  ///< the default first
  Size size;
  DeviceInfo device;
  int rounds = 3;       ///< samples of one look
  int looks = 1 << 20;  ///< budget: looks at configurations, one of `rounds` samples each
  std::uint64_t seed = 1;
};

/// After `looks` looks, `best` was the configuration with the least median so far.
struct Step {
  int looks = 0;
  std::size_t best = 0;
};

struct Search {
  std::vector<Step> steps;
  std::vector<std::size_t> candidates;            ///< those looked at, the first first
  std::map<std::size_t, std::vector<double>> us;  ///< their samples
  std::map<std::size_t, std::string> failures;    ///< of those that failed
  std::size_t best = 0;                           ///< of the space, not of `candidates`
  bool found = false;                             ///< false: every configuration failed

  /// The median of a candidate's samples; infinity where there is none.
  double median_us(std::size_t candidate) const;
  /// Candidates from fastest to slowest.
  std::vector<std::size_t> ranking() const;
};

/// Every configuration, in rounds that hold them all.
Search exhaustive(const Arena& arena, Timer& timer);
/// One after another in random order, the default first, until the budget is spent.
Search random_order(const Arena& arena, Timer& timer);
/// From the default to the first better one of the nearest, in random order - one parameter
/// changed, or two where the space has holes - until none is better; then from a random one not yet
/// seen.
Search hill_climbing(const Arena& arena, Timer& timer);
/// Looks at all, drops the clearly slower ones (interval of the paired ratio), looks at the rest
/// again: the samples go where the decision is close.
Search successive_elimination(const Arena& arena, Timer& timer);
/// In the order the model of the space predicts, best first.
Search by_model(const Arena& arena, Timer& timer);

struct NamedSearcher {
  const char* name;
  Search (*run)(const Arena&, Timer&);
};
const std::vector<NamedSearcher>& searchers();

/// How many parameters two configurations set differently.
int distance(const Parameters& a, const Parameters& b);

}  // namespace cookbook::tune
