// SPDX-License-Identifier: MIT
// The problem: out[i] = 2 in[i] + 1 for n floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::mine {

struct Problem {
  std::int64_t n = 0;  // elements

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("takes one size, n >= 0 elements");
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
  /// Floating-point operations; 0 where the bytes are what counts.
  double flops() const { return 0; }

  /// Row `row` of the output `out` in fp64, and how far an fp32 result may be from it: one rounding
  /// of the multiplication, one of the addition.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    const double u = unit_roundoff(DType::f32);
    for (std::int64_t col = 0; col < in.spec.cols; ++col) {
      const double twice = 2 * in.at(row, col);
      value[col] = twice + 1;
      bound[col] = u * (std::fabs(twice) + std::fabs(value[col])) + half_ulp(DType::f32, 0);
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

}  // namespace cookbook::mine
