// SPDX-License-Identifier: MIT
// Options as JSON: how one program of a chapter asks another.
#pragma once

#include "common/harness/contract/json.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Options, list, check, explain, no_trace, all, levels, sizes,
                                   pitches, bases, inputs, ladder, json, launches, profile, energy,
                                   draw, timeline, exercise, describe, seed, seconds, in_process,
                                   time_limit, benchmark_arguments)

}  // namespace cookbook
