// SPDX-License-Identifier: MIT
// Statistics of samples of time, for the benchmarks and the tuner.
#pragma once

#include <vector>

#include "common/harness/report/result.hpp"

namespace cookbook {

/// The q-quantile (0 to 1) of samples in ascending order, interpolated; there must be one.
double quantile(const std::vector<double>& sorted, double q);

/// Median of the samples that exist (NaN: missing); infinity when there is none.
double median(std::vector<double> samples);

/// Time of `base` over time of `other`, round by round: median and 95 % interval (bootstrap with a
/// fixed seed: the same samples give the same interval). Above 1: `other` is faster. All 0 when no
/// round has both.
Ratio paired_ratio(const std::vector<double>& base, const std::vector<double>& other);

}  // namespace cookbook
