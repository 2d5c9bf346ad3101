// SPDX-License-Identifier: MIT
#include "chapters/14_blackwell/problem.hpp"

namespace cookbook::microscaling {
namespace {

/// The k elements of a row, each multiplied with its scale.
template <class F>
std::vector<double> scaled_row(const Problem<F>& p, const HostTensor& elements,
                               const HostTensor& scales, std::int64_t row) {
  const auto* from = elements.template data<std::uint8_t>() + row * elements.spec.pitch;
  const auto* atoms =
      scales.template data<std::uint8_t>() + row / kAtomRows * p.atoms_k() * kAtomBytes;
  const std::int64_t in_atom = row % 32 * 16 + row % kAtomRows / 32 * 4;
  std::vector<double> values(static_cast<std::size_t>(p.k));
  for (std::int64_t i = 0; i < p.k; ++i) {
    const std::int64_t block = i / F::kScaleK;
    values[static_cast<std::size_t>(i)] =
        F::element(from, i) *
        F::scale(atoms[block / kAtomScales * kAtomBytes + in_atom + block % kAtomScales]);
  }
  return values;
}

}  // namespace

template <class F>
void Problem<F>::reference_row(const HostTensors& tensors, const std::string& /*output*/,
                               std::int64_t row, double* value, double* bound) const {
  constexpr std::int64_t kStep = 256 / F::kBits;
  constexpr double kUnit = 0x1p-24;
  const auto left = scaled_row(*this, tensors["a"], tensors["scale_a"], row);
  for (std::int64_t col = 0; col < n; ++col) {
    const auto right = scaled_row(*this, tensors["b"], tensors["scale_b"], col);
    double sum = 0, lost = 0;
    for (std::int64_t first = 0; first < k; first += kStep) {
      const auto end = static_cast<std::size_t>(std::min(first + kStep, k));
      double largest = std::fabs(sum) + lost;
      for (auto i = static_cast<std::size_t>(first); i < end; ++i) {
        sum += left[i] * right[i];
        largest = std::max(largest, std::fabs(left[i] * right[i]));
      }
      double cut = 2 * largest * kUnit;
      for (auto i = static_cast<std::size_t>(first); i < end; ++i) {
        cut += std::min(std::fabs(left[i] * right[i]), largest * kUnit);
      }
      lost += cut + kUnit * std::fabs(sum);
    }
    value[col] = sum;
    bound[col] = lost + half_ulp(DType::bf16, std::fabs(sum) + lost);
  }
}

template void Problem<Mxfp8>::reference_row(const HostTensors&, const std::string&, std::int64_t,
                                            double*, double*) const;
template void Problem<Nvfp4>::reference_row(const HostTensors&, const std::string&, std::int64_t,
                                            double*, double*) const;

}  // namespace cookbook::microscaling
