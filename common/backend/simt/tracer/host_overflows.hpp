// SPDX-License-Identifier: MIT
// Arithmetic that does not fit its type, of host code that is compiled with the hooks.
#pragma once

#include <string_view>
#include <vector>

#include "common/backend/simt/runtime/trace.hpp"

namespace cookbook::simt::tracing {

/// What to do about an operation, as findings describe it.
inline const char* overflow_remedy(std::string_view operation) {
  return operation.starts_with("a shift") ? "shift a wider value, or by less than its width"
                                          : "convert an operand to std::int64_t first";
}

/// What host code has done since the last call.
std::vector<Finding> take_host_overflows();

}  // namespace cookbook::simt::tracing
