// SPDX-License-Identifier: MIT
// What the tracer counted, between the process of a submission and the grader.
#pragma once

#include <nlohmann/json.hpp>

#include "common/backend/simt/runtime/trace.hpp"

namespace cookbook::simt {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AccessSite, kernel, file, line, space, op, buffer, requests,
                                   lanes, sectors, ideal_sectors, wavefronts, ideal_wavefronts,
                                   bytes)

}  // namespace cookbook::simt
