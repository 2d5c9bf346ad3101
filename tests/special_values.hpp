// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

namespace cookbook {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace cookbook
