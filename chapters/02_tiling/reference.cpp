// SPDX-License-Identifier: MIT
#include "chapters/02_tiling/reference.hpp"

#include <algorithm>
#include <cmath>

namespace cookbook::sgemm {

void product_row(const float* a_row, const float* b, std::int64_t ldb, std::int64_t n,
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
