// SPDX-License-Identifier: MIT
#pragma once

#include "common/harness/contract/level.hpp"

namespace cookbook {

/// A level's mechanism claims, with other speed claims than its own: for a ladder with another
/// roof, another previous level, or another range of sizes than its own ladder.
inline LevelEntry claiming(LevelEntry level, Claims speed) {
  level.claims = [own = level.claims, speed = std::move(speed)](const AnyProblem& problem) {
    Claims claims = speed;
    for (Claim& claim : mechanism(own(problem))) claims.push_back(std::move(claim));
    return claims;
  };
  return level;
}

}  // namespace cookbook
