// SPDX-License-Identifier: MIT
// The command line that every chapter shares.
#pragma once

#include "common/harness/contract/level.hpp"

namespace cookbook {

/// Runs a chapter as its command line asks: checks every level, benchmarks it on a GPU, checks its
/// claims, prints the ladder. Returns the exit status: 0 all right; 1 a mismatch, a race or a
/// false claim; 2 bad usage or an impossible size; 3 a level that crashed or hung.
int run_chapter(const Chapter& chapter, int argc, char** argv, const Libraries& libraries = {});

}  // namespace cookbook
