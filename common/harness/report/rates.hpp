// SPDX-License-Identifier: MIT
// From samples of time to what a ladder's result says: rates, ratios, fractions of a roof, claims
// of speed. Separate from the sampling, which needs a GPU.
#pragma once

#include <string>
#include <vector>

#include "common/harness/report/result.hpp"

namespace cookbook {

/// What was measured of one contender of a ladder.
struct TimedContender {
  static constexpr int kLibrary = -1;
  int number = kLibrary;  ///< of a level in its ladder, or kLibrary
  std::size_t row = 0;    ///< in LadderResult::levels, or in LadderResult::references
  std::string name;
  Timing cold, hot;             ///< microseconds per launch
  std::vector<double> cold_us;  ///< one sample per round, in round order
  std::string error;            ///< why there are no times; empty: there are
};

/// Enters times into `result`: GB/s and TFLOP/s of the cold median, the fraction of the ladder's
/// roof, and paired ratios to the level directly below in the ladder (where it was timed) and to
/// the first library that was timed. A level with an error becomes a mismatch, a library with one
/// is skipped. `contenders` are in the order of the ladder; result.bytes, flops, roof and roofs are
/// set.
void enter_times(const std::vector<TimedContender>& contenders, LadderResult& result);

/// Checks a speed claim on what was measured on the GPU called `device`. It is left open if it is
/// about a mechanism, if there are no figures, or if it was made for another GPU (`made_for`,
/// unless the claim names its own) and does not hold here; `measured` then says so.
void check_speed_claim(ClaimResult& claim, const LevelResult& level, const std::string& device,
                       const std::string& made_for);

/// Sets the roof that a kernel measures which moves `bytes` or computes `flops` per launch. Roofs
/// of device memory are the cold median's, the others the hot one's: they must not include the
/// loads of flushed data.
void enter_roof(Roof roof, double bytes, double flops, const Timing& cold, const Timing& hot,
                Roofs& roofs);

/// Whether a level is so much faster than its roof that one of them must be wrong.
bool over_its_roof(const LevelResult& level);

/// Sets each roof that was measured `again`, and higher, to that value.
void raise_roofs(const Roofs& again, Roofs& roofs);

}  // namespace cookbook
