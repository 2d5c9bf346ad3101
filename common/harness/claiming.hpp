// SPDX-License-Identifier: MIT
#pragma once

#include "common/harness/level.hpp"

namespace cookbook {

/// A level's mechanism claims, with other speed claims than its own: in a ladder with another roof,
/// another row below it, or another range of sizes than its file has in mind.
inline LevelEntry claiming(LevelEntry level, Claims speed) {
  level.claims = [own = level.claims, speed = std::move(speed)](const AnyProblem& problem) {
    Claims claims = speed;
    for (const Claim& claim : own(problem)) {
      if (claim.is_mechanism()) claims.push_back(claim);
    }
    return claims;
  };
  return level;
}

}  // namespace cookbook
