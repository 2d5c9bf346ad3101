// SPDX-License-Identifier: MIT
// What levels launch, without running a kernel. SIMT backend only.
#pragma once

#include <optional>

#include "common/harness/contract/launches.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

/// What a level launches for a problem of any size on the device that the model stands for. No
/// kernel runs, and memory that the host does not touch takes no space. Nothing where the level
/// does not support the problem.
std::optional<Launches> dry_launches(const LevelEntry& level, const AnyProblem& problem);

}  // namespace cookbook
