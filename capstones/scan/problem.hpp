// SPDX-License-Identifier: MIT
// The problem: out[i] = in[0] + ... + in[i] for n floats, an inclusive scan.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/sync.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::scan {

struct Problem {
  std::int64_t n = 0;  // elements
  // What the reference of every row needs: the sums of all rows before it, of x and of |x|.
  std::vector<double> sum_before = {}, magnitude_before = {};

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0 || size[0] >= std::int64_t{1} << 40) {
      throw BadSize("a scan takes one size, 0 <= n < 2^40 elements");
    }
    return {size[0]};
  }

  /// Results are compared row by row. A long array is rows of 4,096 elements if that divides n, and
  /// one row otherwise. Memory is contiguous either way.
  TensorSpec vector(const char* name, Role role) const {
    const std::int64_t cols = n > 0 && n % 4096 == 0 ? 4096 : n;
    return {name, DType::f32, cols == 0 ? 0 : n / cols, cols, cols, role};
  }
  std::vector<TensorSpec> tensors() const {
    return {vector("in", Role::input), vector("out", Role::output)};
  }

  /// The fewest bytes through device memory: each element is read once and written once.
  double bytes() const { return 2.0 * 4.0 * static_cast<double>(n); }
  double flops() const { return 0; }

  void begin_reference(const HostTensors& tensors) {
    const TensorSpec& spec = tensors["in"].spec;
    const float* in = tensors["in"].data<float>();
    sum_before.assign(static_cast<std::size_t>(spec.rows), 0.0);
    magnitude_before = sum_before;
    for (std::int64_t row = 1; row < spec.rows; ++row) {
      double sum = sum_before[row - 1], magnitude = magnitude_before[row - 1];
      for (std::int64_t i = (row - 1) * spec.cols; i < row * spec.cols; ++i) {
        sum += in[i], magnitude += std::fabs(in[i]);
      }
      sum_before[row] = sum, magnitude_before[row] = magnitude;
    }
  }

  /// Row `row` of the scan in fp64, and how far an fp32 sum of the same terms, in any order, may be
  /// from it: the errors of its additions do not all have the same sign, so they grow as the root
  /// of their number.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const TensorSpec& spec = tensors["in"].spec;
    const float* in = tensors["in"].data<float>();
    const std::int64_t begin = row * spec.cols;
    double sum = 0, magnitude = 0;
    if (sum_before.empty()) {
      for (std::int64_t i = 0; i < begin; ++i) sum += in[i], magnitude += std::fabs(in[i]);
    } else {
      sum = sum_before[row], magnitude = magnitude_before[row];
    }
    for (std::int64_t col = 0; col < spec.cols; ++col) {
      sum += in[begin + col], magnitude += std::fabs(in[begin + col]);
      value[col] = sum;
      bound[col] = 4 * std::sqrt(static_cast<double>(begin + col + 1)) * unit_roundoff(DType::f32) *
                       magnitude +
                   half_ulp(DType::f32, 0);
    }
  }
};

struct Buffers {
  const float* in = nullptr;
  float* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<float>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Blocks for n elements, so many per block; none if there are no elements.
inline dim3 blocks_for(std::int64_t n, std::int64_t per_block) {
  return dim3(static_cast<unsigned>(ceil_div(n, per_block)));
}

/// Workspace of `count` elements; at least one, so that there is an address.
template <class T>
DeviceMemory workspace(std::int64_t count, const char* name) {
  return DeviceMemory(static_cast<std::size_t>(count > 0 ? count : 1) * sizeof(T), name);
}

}  // namespace cookbook::scan
