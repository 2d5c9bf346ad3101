// SPDX-License-Identifier: MIT
// What every level must produce. A transpose has no rounding: the allowed error is zero.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::transpose {

/// Row `row` of the transpose: value[col] = in(col, row), bound[col] = 0.
inline void transposed_row(const HostTensor& in, std::int64_t row, double* value, double* bound) {
  for (std::int64_t col = 0; col < in.spec.rows; ++col) {
    value[col] = in.at(col, row);
    bound[col] = 0;
  }
}

/// Row `row` of a stack of kTile x kTile matrix multiplications c = a b, summed in fp64. The bound
/// is that of kTile additions and multiplications in fp32 whose errors do not all have the same
/// sign.
template <int kTile>
void product_row(const HostTensor& a, const HostTensor& b, std::int64_t row, double* value,
                 double* bound) {
  const std::int64_t first = row / kTile * kTile;  // first row of this tile of b
  for (std::int64_t col = 0; col < kTile; ++col) {
    double sum = 0;
    double magnitude = 0;
    for (std::int64_t k = 0; k < kTile; ++k) {
      const double term = a.at(row, k) * b.at(first + k, col);
      sum += term;
      magnitude += std::fabs(term);
    }
    value[col] = sum;
    bound[col] = 4 * std::sqrt(double{kTile}) * unit_roundoff(DType::f32) * magnitude +
                 kTile * half_ulp(DType::f32, 0);
  }
}

}  // namespace cookbook::transpose
