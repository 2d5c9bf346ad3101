// SPDX-License-Identifier: MIT
#pragma once

#include "common/harness/level.hpp"

namespace cookbook {

/// A level with its own mechanism claims and other speed claims: in a ladder that has another roof,
/// another previous level or other sizes than the level's file states claims for.
inline LevelEntry claiming(LevelEntry level, Claims speed) {
  level.claims = [own = level.claims, speed = std::move(speed)](const AnyProblem& problem) {
    Claims claims = speed;
    for (Claim& claim : mechanism(own(problem))) claims.push_back(std::move(claim));
    return claims;
  };
  return level;
}

}  // namespace cookbook
