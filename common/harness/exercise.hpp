// SPDX-License-Identifier: MIT
// Grading of exercises, and the traced run of a level that grading and chapters share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/harness/check.hpp"
#include "common/harness/options.hpp"
#include "common/harness/result.hpp"

namespace cookbook {

/// What a traced run of one level found (SIMT backend, traced executables only).
struct TracedRun {
  CheckResult check;
  std::map<std::string, double> counters;
  std::vector<ClaimResult> claims;
  std::vector<FoundFault> findings;
  std::string report;  ///< per source line, for --explain
};

/// Runs `level` once under the tracer and checks its mechanism claims. Kernels run as `isolation`
/// says; by default in this process.
TracedRun trace_level(const LevelEntry& level, Instance& instance,
                      const Isolation& isolation = {.in_process = true});

/// Prints as JSON what a teacher's assignment takes from exercise `options.exercise`: its file and
/// title, and the extents and sizes of its ladder.
void describe_exercise(const Chapter& chapter, const Options& options);

/// Grades exercise `options.exercise` of `chapter`: every test shape (or those of --size), then at
/// the traced size every kind of input, layouts and schedules of asynchronous copies; then claims
/// and findings under the tracer. Prints one line per check, writes --json, and returns the exit
/// status: 0 passed, 1 not yet. With --size, or without the traced program, the grade is not
/// complete: such a run never passes. A traced program runs only its part and never passes either.
int grade_exercise(const Chapter& chapter, const Options& options);

}  // namespace cookbook
