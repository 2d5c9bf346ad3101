// SPDX-License-Identifier: MIT
// What a command line asks to run. Made before anything runs, so that a mistake is found at once.
#pragma once

#include <string>
#include <vector>

#include "common/harness/run/options.hpp"
#include "common/harness/verdict/isolate.hpp"

namespace cookbook {

/// Some levels of a ladder at one size.
struct LadderRun {
  const Ladder* ladder = nullptr;
  std::vector<int> levels;               ///< indices, in order
  Size size;                             ///< of the run; on a GPU of its timing
  Size checked_size;                     ///< at which every level is checked first
  Variant variant;                       ///< of the checked or traced problem
  InputKind inputs = InputKind::normal;  ///< the same
  bool timed = false;
  Isolation isolation;
  std::vector<Roof> roofs;  ///< to measure: those that the ladders of the whole plan need
};

struct RunPlan {
  std::vector<LadderRun> runs;
  std::vector<std::string> left_out;  ///< one line for each ladder that cannot run as asked
};

/// A UsageError where two levels of a ladder have one name, or the problem does not support one of
/// the ladder's sizes.
void require_sound(const Chapter& chapter);

/// What is done at a ladder's default size: its levels are timed, checked, or traced.
enum class Purpose { time, check, trace };

/// The runs that `options` ask for. With several ladders, --level applies to ladders that have the
/// level, and --size to ladders that support the size. If no ladder does, it is a UsageError.
RunPlan make_plan(const Chapter& chapter, const Options& options, Purpose purpose);

/// The time limit that `options` and COOKBOOK_TIME_LIMIT set; without either 60 s at `usual`, and
/// at a larger `size` as much more as the problem has more bytes and operations.
Isolation isolation_at(const Ladder& ladder, const Options& options, const Size& size,
                       const Size& usual);

}  // namespace cookbook
