// SPDX-License-Identifier: MIT
#include "chapters/12_fp8/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace cookbook::fp8 {

void scaled_row(const HostTensor& a, const HostTensor& b, const HostTensor& scale_a,
                const HostTensor& scale_b, std::int64_t row, std::int64_t n, std::int64_t k,
                double* value, double* bound) {
  constexpr std::int64_t kBlock = 128, kStep = 32;
  constexpr float kUnit = 0x1p-13f;
  std::vector<double> left(static_cast<std::size_t>(k)), right(left.size());
  a.read_row(row, k, left.data());
  const auto* scales_a = scale_a.data<float>();
  const auto* scales_b = scale_b.data<float>();
  const double u32 = unit_roundoff(DType::f32);
  for (std::int64_t col = 0; col < n; ++col) {
    b.read_row(col, k, right.data());
    double total = 0, lost = 0, magnitude = 0;
    bool any = false;  // an infinite scale times a sum of unknown sign: any value is right
    for (std::int64_t block = 0; block * kBlock < k; ++block) {
      float terms[kStep];
      double sum = 0, block_lost = 0, block_magnitude = 0;
      for (std::int64_t step = block * kBlock; step < std::min((block + 1) * kBlock, k);
           step += kStep) {
        float largest = static_cast<float>(std::fabs(sum) + block_lost), all = 0, cut = 0;
        const std::int64_t count = std::min(kStep, k - step);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto x = static_cast<std::size_t>(step + i);
          terms[i] = static_cast<float>(left[x] * right[x]);
          sum += static_cast<double>(terms[i]);  // both exact: a term has 8 significant bits
          all += std::fabs(terms[i]);
          largest = std::max(largest, std::fabs(terms[i]));
        }
        const float unit = largest * kUnit;
        for (std::int64_t i = 0; i < count; ++i) cut += std::min(std::fabs(terms[i]), unit);
        block_lost += static_cast<double>(cut + unit) +
                      static_cast<double>(kUnit) * (std::fabs(sum) + block_lost);
        block_magnitude += static_cast<double>(all);
      }
      const float scale = scales_a[block * scale_a.spec.pitch + row] *
                          scales_b[col / kBlock * scale_b.spec.pitch + block];
      any = any || (std::isinf(scale) && block_lost > 0 && std::fabs(sum) <= block_lost);
      total += static_cast<double>(scale) * sum;
      magnitude += std::fabs(static_cast<double>(scale)) * block_magnitude;
      lost += std::fabs(static_cast<double>(scale)) * block_lost;
    }
    const auto blocks = static_cast<double>((k + kBlock - 1) / kBlock);
    const double error = lost + (kBlock + blocks) * u32 * magnitude;
    value[col] = any ? 0 : total;
    bound[col] = any ? std::numeric_limits<double>::infinity()
                     : error + half_ulp(DType::bf16, std::fabs(total) + error);
  }
}

}  // namespace cookbook::fp8
