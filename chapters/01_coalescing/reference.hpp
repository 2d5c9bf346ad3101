// SPDX-License-Identifier: MIT
// What every level must produce. A copy has no rounding: the allowed error is zero.
#pragma once

#include <cstdint>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::coalescing {

/// Row `row` of the copy: value[col] = in(row, col), bound[col] = 0.
inline void copy_row(const HostTensor& in, std::int64_t row, double* value, double* bound) {
  for (std::int64_t col = 0; col < in.spec.cols; ++col) {
    value[col] = in.at(row, col);
    bound[col] = 0;
  }
}

}  // namespace cookbook::coalescing
