// SPDX-License-Identifier: MIT
// The reference that every level is compared with: one row of C = A B in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cookbook::sgemm {

/// value[j] = sum over p of a_row[p] * b[p][j] for the `n` columns of one row of C, and bound[j],
/// how far an fp32 sum of the same terms may lie from it:
///   4 sqrt(k) u * sum over p of |a_row[p] * b[p][j]|,   u = 2^-24,
/// the statistical growth of k roundings, plus the underflow of k multiplications whose results are
/// denormal. Every term is added, zeros too, so that the NaN of 0 * Inf appears where IEEE 754
/// requires it.
inline void product_row(const float* a_row, const float* b, std::int64_t ldb, std::int64_t n,
                        std::int64_t k, double* value, double* bound) {
  std::fill(value, value + n, 0.0);
  std::fill(bound, bound + n, 0.0);
  for (std::int64_t p = 0; p < k; ++p) {
    const double a = a_row[p];
    const float* b_row = b + p * ldb;
    for (std::int64_t j = 0; j < n; ++j) {
      const double term = a * b_row[j];
      value[j] += term;
      bound[j] += std::fabs(term);
    }
  }
  const double terms = static_cast<double>(std::max<std::int64_t>(k, 1));
  const double relative = 4 * std::sqrt(terms) * std::ldexp(1.0, -24);
  const double denormal = terms * std::ldexp(1.0, -149);
  for (std::int64_t j = 0; j < n; ++j) bound[j] = relative * bound[j] + denormal;
}

}  // namespace cookbook::sgemm
