// SPDX-License-Identifier: MIT
// What a run of a program found, for tools/check/check.py.
#pragma once

#include <string>
#include <vector>

#include "tools/check/program/program.hpp"
#include "common/backend/simt/runtime/trace.hpp"

namespace cookbook::simt::program {

/// A call of the runtime API, or a launch, that failed.
struct FailedCall {
  std::string function;
  std::string message;
  Place place;
  bool is_launch = false;
  bool looked_at = false;  ///< The program asked for its error afterwards.
};

/// How much CPU time a launch took, and how much of it a traced run looks at, 0 to 1.
struct LaunchTime {
  double seconds, traced_part;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<FailedCall> failed_calls;
  Trace trace;
  std::string explanation;
  uint64_t launches = 0;
  std::vector<LaunchTime> times;    ///< Of the first ones.
  uint64_t copies = 0, copied = 0;  ///< To the host: their number, and a hash of all.
  bool nan_copied = false;          ///< To the host.
  bool infinity_copied = false;     ///< To the host.
  bool infinity_given = false;      ///< By the host.
  bool large_grid = false;          ///< One of more blocks than the device has SMs.
  int status = 0;                   ///< That the program exits with.
  std::string unsupported;          ///< What the program asked for at run time and is not here.
  std::string crash;                ///< How host code ended the program, if it did.
};

/// What a run has done so far: for check.py, also when the run is killed.
struct Progress {
  uint64_t launches = 0;
  double traced_seconds = 0, other_seconds = 0;  ///< Of launches that are traced, and others.
};
/// In a file beside the report; elsewhere if there is none.
Progress& progress();

/// "prog.cu:12"
std::string describe(Place place);
/// The source line; empty if it cannot be read.
std::string source_line(Place place);

/// Writes the report as JSON to the file of COOKBOOK_CHECK_REPORT, if that is set.
void write(const Report& report);

}  // namespace cookbook::simt::program
