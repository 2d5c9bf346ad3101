// SPDX-License-Identifier: MIT
// Runs one ladder of a plan. Compiled for each kind of executable: plain SIMT, traced SIMT
// (COOKBOOK_TRACED) and CUDA.
#pragma once

#include "common/harness/report/result.hpp"
#include "common/harness/run/plan.hpp"

namespace cookbook {

/// Checks every level of `run`; on a GPU times them as well, and has the traced executable check
/// their mechanism claims. A traced executable traces them, and prints each report for --explain.
LadderResult execute(const Chapter& chapter, const LadderRun& run, const Libraries& libraries,
                     const Options& options);

/// Times the levels of `run` that are right, with the libraries beside them (CUDA only).
void time_levels(const LadderRun& run, const Libraries& libraries, const Options& options,
                 LadderResult& result);

}  // namespace cookbook
