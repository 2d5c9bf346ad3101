// SPDX-License-Identifier: MIT
#include "common/harness/report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace cookbook {

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double median(std::vector<double> samples) {
  std::erase_if(samples, [](double x) { return std::isnan(x); });
  if (samples.empty()) return std::numeric_limits<double>::infinity();
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}

Ratio paired_ratio(const std::vector<double>& base, const std::vector<double>& other) {
  std::vector<double> ratios;
  for (std::size_t r = 0; r < std::min(base.size(), other.size()); ++r) {
    const double ratio = base[r] / other[r];
    if (!std::isnan(ratio)) ratios.push_back(ratio);
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  std::mt19937 random(7);
  std::vector<double> medians, draw(ratios.size());
  for (int i = 0; i < 1000; ++i) {
    for (double& value : draw) value = ratios[random() % ratios.size()];
    std::sort(draw.begin(), draw.end());
    medians.push_back(quantile(draw, 0.5));
  }
  std::sort(medians.begin(), medians.end());
  return {quantile(ratios, 0.5), quantile(medians, 0.025), quantile(medians, 0.975)};
}

}  // namespace cookbook
