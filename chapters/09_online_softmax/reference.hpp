// SPDX-License-Identifier: MIT
// The expected result of every level in fp64, and the error bound of fp32 arithmetic.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::softmax {

/// Added to the mean of the squares, so that a row of zeros has a norm.
constexpr float kEpsilon = 1e-6f;

/// Row `row` of the softmax: value[i] = exp(x[i] - m) / sum over j of exp(x[j] - m), m = max of x.
/// IEEE arithmetic decides the special rows: a NaN, a +inf or only -inf gives a row of NaN; a -inf
/// among finite numbers gives 0.
///
/// The bound, in units u of one fp32 rounding, relative to value[i]:
///   3 |x[i] - m|   the exponent x - m is rounded, and multiplied by a rounded log2(e);
///   3 avg          the same for the terms of the sum, each weighted by its fraction of it;
///   4 sqrt(cols)   additions, whose errors do not all have the same sign;
///   32             up to five approximate exponentials of 4 u each (ex2.approx: 2 units in the
///                  last place) where partial sums are rescaled, and the multiplications between
///                  them.
/// Results below the smallest normal float may be flushed to zero. A 16-bit output is rounded once
/// more.
inline void softmax_row(const HostTensor& in, DType out_type, std::int64_t row, double* value,
                        double* bound) {
  const std::int64_t cols = in.spec.cols;
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t col = 0; col < cols; ++col) max = std::fmax(max, in.at(row, col));
  double sum = 0;
  double distance = 0;  // of x from the maximum, weighted by its exponential
  for (std::int64_t col = 0; col < cols; ++col) {
    const double below = in.at(row, col) - max;
    value[col] = std::exp(below);
    bound[col] = std::fabs(below);
    sum += value[col];
    if (value[col] > 0) distance += bound[col] * value[col];
  }
  const double u = unit_roundoff(DType::f32);
  const double common = 32 + 4 * std::sqrt(static_cast<double>(cols)) + 3 * distance / sum;
  for (std::int64_t col = 0; col < cols; ++col) {
    value[col] /= sum;
    const double relative = value[col] > 0 ? u * (common + 3 * bound[col]) : 0;
    bound[col] = value[col] * relative + double{std::numeric_limits<float>::min()} +
                 half_ulp(out_type, value[col]);
  }
}

/// Row `row` of RMSNorm: value[i] = x[i] w[i] / sqrt(mean of x^2 + kEpsilon). The bound: additions
/// as above, an approximate reciprocal square root and four roundings.
inline void rmsnorm_row(const HostTensor& in, const HostTensor& weight, DType out_type,
                        std::int64_t row, double* value, double* bound) {
  const std::int64_t cols = in.spec.cols;
  double squares = 0;
  for (std::int64_t col = 0; col < cols; ++col) squares += in.at(row, col) * in.at(row, col);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + double{kEpsilon});
  const double relative =
      unit_roundoff(DType::f32) * (8 + 2 * std::sqrt(static_cast<double>(cols)));
  for (std::int64_t col = 0; col < cols; ++col) {
    value[col] = in.at(row, col) * scale * weight.at(0, col);
    bound[col] = std::fabs(value[col]) * relative + half_ulp(out_type, value[col]) +
                 (4 + std::fabs(weight.at(0, col))) * half_ulp(DType::f32, 0);
  }
}

}  // namespace cookbook::softmax
