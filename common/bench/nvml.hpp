// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "common/harness/report/result.hpp"

namespace cookbook {

/// Clocks, power and temperature now, through NVML loaded at run time; nothing where it is missing.
/// `seconds` is left at zero.
std::optional<ClockSample> sample_clocks();
/// The highest SM clock, in MHz; 0 where NVML is missing.
int max_sm_clock_mhz();

/// Energy that the GPU has used since its driver was loaded, or nothing where NVML does not know
/// (before Volta). It changes every few milliseconds at most.
std::optional<double> total_joules();

}  // namespace cookbook
