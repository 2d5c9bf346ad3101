// SPDX-License-Identifier: MIT
// The problem: y = A x with A of bf16 (m x k, row-major, any pitch), x of bf16 and y of fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::gemv {

/// Extents of A, and its pitch in elements.
struct Shape {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t pitch = 0;  // at least k
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      throw BadSize("takes two sizes, m x k, both >= 0");
    }
    return {{size[0], size[1], size[1] + variant.of("a").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"a", DType::bf16, shape.m, shape.k, shape.pitch, Role::input},
            {"x", DType::bf16, 1, shape.k, shape.k, Role::input},
            {"y", DType::f32, shape.m, 1, 1, Role::output}};
  }

  /// The fewest bytes through device memory: A and x are read once, y is written once.
  double bytes() const {
    const auto m = static_cast<double>(shape.m), k = static_cast<double>(shape.k);
    return 2 * m * k + 2 * k + 4 * m;
  }
  double flops() const { return 0; }

  /// Row `row` of y in fp64, and how far an fp32 sum of its k terms, in any order, may be from it.
  /// A product of two bf16 is exact in fp32. The errors of the additions do not all have the same
  /// sign, so they grow as the root of their number.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor &a = tensors["a"], &x = tensors["x"];
    double sum = 0, magnitude = 0;
    for (std::int64_t col = 0; col < shape.k; ++col) {
      const double term = a.at(row, col) * x.at(0, col);
      sum += term, magnitude += std::fabs(term);
    }
    const double terms = static_cast<double>(shape.k + 1);
    value[0] = sum;
    bound[0] =
        4 * std::sqrt(terms) * unit_roundoff(DType::f32) * magnitude + half_ulp(DType::f32, 0);
  }
};

struct Buffers {
  const bf16* a = nullptr;
  const bf16* x = nullptr;
  float* y = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const bf16>("a"), at.get<const bf16>("x"), at.get<float>("y")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Blocks for m rows, so many per block; none if there are no rows.
inline dim3 blocks_for(std::int64_t m, std::int64_t per_block) {
  return dim3(static_cast<unsigned>(ceil_div(m, per_block)));
}

}  // namespace cookbook::gemv
