// SPDX-License-Identifier: MIT
/// @file
/// Levels over a space: a level that launches the configuration that was chosen.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "chapters/11_autotuning/tuner/tuner.hpp"

namespace cookbook::tune {

/// Configurations in order of preference for one problem and its buffers.
using Order = std::function<std::vector<std::size_t>(const AnyProblem&, const DevicePointers&)>;

/// The level that prepares the first configuration of `order` that takes the problem. Its run only
/// launches: the choice is made once, when the plan is. `space` must outlive it.
inline LevelEntry level_over(const Space& space, const LevelText& text, Order order,
                             Claims speed_claims = {}) {
  LevelEntry entry = level_entry(text, true, {});
  entry.source = space.source;
  entry.supports = [&space](const AnyProblem& problem, const DeviceInfo& device) {
    if (!legal(space, problem, device).empty()) return Support::yes();
    const auto fates = legality(space, problem, device);
    return Support::no(fates.empty() ? "the space is empty" : fates.front().reason);
  };
  entry.prepare = [&space, order](const AnyProblem& problem, const DevicePointers& at) {
    return prepare_first(space, order(problem, at), problem, at);
  };
  entry.claims = [&space, speed_claims](const AnyProblem& problem) {
    Claims claims;  // every configuration keeps what the default promises
    const auto& all = space.candidates();
    const auto legal = std::ranges::find(all, "", &Candidate::illegal);
    if (legal != all.end()) claims = legal->level.claims(problem);
    claims.insert(claims.end(), speed_claims.begin(), speed_claims.end());
    return claims;
  };
  return entry;
}

/// `first`, then every other configuration that can run `problem`.
inline std::vector<std::size_t> with_fallbacks(std::size_t first, const Space& space,
                                               const AnyProblem& problem) {
  std::vector<std::size_t> order = require_legal(space, problem, device_info());
  const auto at = std::ranges::find(order, first);
  if (at != order.end()) std::rotate(order.begin(), at, at + 1);
  return order;
}

}  // namespace cookbook::tune
