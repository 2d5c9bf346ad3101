// SPDX-License-Identifier: MIT
#include "common/problems/gemm_reference.hpp"

#include <cmath>
#include <vector>

namespace cookbook::gemm {

template <class T>
void gemm_row(const T* a, std::int64_t a_row, std::int64_t a_col, const T* b, std::int64_t b_row,
              std::int64_t b_col, std::int64_t n, std::int64_t k, std::int64_t row, double* value,
              double* bound) {
  std::vector<double> magnitude(static_cast<std::size_t>(n), 0.0);  // (|A| |B|) of this row
  for (std::int64_t col = 0; col < n; ++col) value[col] = 0.0;
  for (std::int64_t p = 0; p < k; ++p) {
    const double left = ElementOf<T>::value(a[row * a_row + p * a_col]);
    const T* right = b + p * b_row;
    for (std::int64_t col = 0; col < n; ++col) {
      const double product = left * ElementOf<T>::value(right[col * b_col]);
      value[col] += product;
      magnitude[static_cast<std::size_t>(col)] += std::fabs(product);
    }
  }
  const double u32 = unit_roundoff(DType::f32);
  for (std::int64_t col = 0; col < n; ++col) {
    const double sum_error =
        2.0 * static_cast<double>(k) * u32 * magnitude[static_cast<std::size_t>(col)];
    bound[col] = sum_error + half_ulp(ElementOf<T>::dtype, std::fabs(value[col]) + sum_error);
  }
}

template void gemm_row(const bf16*, std::int64_t, std::int64_t, const bf16*, std::int64_t,
                       std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*, double*);
template void gemm_row(const half*, std::int64_t, std::int64_t, const half*, std::int64_t,
                       std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*, double*);

}  // namespace cookbook::gemm
