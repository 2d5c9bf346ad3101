// SPDX-License-Identifier: MIT
// The problem: out[r] = sum over c of in[r][c], fp32, any shape and any pitch.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::mine {

/// Extents of `in`, and its pitch in elements.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t pitch = 0;  // at least cols
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      throw BadSize("takes two sizes, rows x cols, both >= 0");
    }
    return {{size[0], size[1], size[1] + variant.of("in").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, shape.rows, shape.cols, shape.pitch, Role::input},
            {"out", DType::f32, shape.rows, 1, 1, Role::output}};
  }

  /// The fewest bytes through device memory: each element is read once, each sum written once.
  double bytes() const {
    return 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols + 1);
  }
  /// Floating-point operations; 0 where the bytes are what counts.
  double flops() const { return 0; }

  /// Row `row` of the output `out` in fp64, and how far an fp32 sum in any order may be from it:
  /// the errors of n additions do not all have the same sign, so they grow as sqrt(n).
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    double sum = 0, magnitude = 0;
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      sum += in.at(row, col);
      magnitude += std::fabs(in.at(row, col));
    }
    const double n = static_cast<double>(shape.cols + 1);
    value[0] = sum;
    bound[0] = 4 * std::sqrt(n) * unit_roundoff(DType::f32) * magnitude + half_ulp(DType::f32, 0);
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
