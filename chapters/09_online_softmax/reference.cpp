// SPDX-License-Identifier: MIT
#include "chapters/09_online_softmax/reference.hpp"

#include <cmath>
#include <limits>

namespace cookbook::softmax {

void softmax_row(const HostTensor& in, DType out_type, std::int64_t row, double* value,
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

void rmsnorm_row(const HostTensor& in, const HostTensor& weight, DType out_type, std::int64_t row,
                 double* value, double* bound) {
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
