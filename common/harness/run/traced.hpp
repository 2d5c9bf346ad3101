// SPDX-License-Identifier: MIT
// The traced run of a level, for grading and for chapters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/verdict.hpp"

namespace cookbook {

/// What a traced run of one level found (SIMT backend, traced executables only).
struct TracedRun {
  CheckResult check;
  std::map<std::string, double> counters;
  std::vector<ClaimResult> claims;
  std::vector<FoundFault> findings;
  std::vector<std::string> advice;
  std::string report;    ///< per source line, for --explain
  std::string requests;  ///< with simt::keep_requests: worst_requests() as text
  std::string lines;     ///< line_counts() as text, for --explain --json
};

/// Runs `level` once under the tracer and checks its mechanism claims. Kernels run as `isolation`
/// says; by default in this process.
TracedRun trace_level(const LevelEntry& level, Instance& instance,
                      const Isolation& isolation = {.in_process = true});

}  // namespace cookbook
