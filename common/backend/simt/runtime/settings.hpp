// SPDX-License-Identifier: MIT
// The COOKBOOK_SIMT_* environment variables.
#pragma once

#include <cstdint>

namespace cookbook::simt {

/// The variable `name` as a whole number from `least` to `most`; `otherwise` where it is unset or
/// empty. Throws std::runtime_error with one line that says what is accepted.
uint64_t environment_number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most);

/// Reads every variable once and throws the error of the first wrong one. Otherwise each would be
/// read where it is first needed, inside a launch, and a wrong value would look like an error of
/// the kernel.
void check_environment();

/// COOKBOOK_SIMT_SPIN_SECONDS: how long all threads may spin before a launch counts as hanging.
uint64_t spin_seconds_from_environment();

/// COOKBOOK_TIME_LIMIT: after this number of seconds without a finished thread the process ends; 0:
/// never.
uint64_t time_limit_from_environment();

}  // namespace cookbook::simt
