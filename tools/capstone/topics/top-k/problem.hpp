// SPDX-License-Identifier: MIT
// The problem: the k largest elements of every row, in order, and where they stand. fp32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::top_k {

/// Extents of `in`, its pitch in elements, and how many of a row are wanted.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t pitch = 0;  // at least cols
  std::int64_t k = 0;      // at most cols
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 3 || size[0] < 0 || size[1] >= std::int64_t{1} << 31 || size[2] < 0 ||
        size[1] < size[2]) {
      throw BadSize("takes rows x cols x k, with 0 <= k <= cols < 2^31");
    }
    return {{size[0], size[1], size[1] + variant.of("in").extra_pitch, size[2]}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, shape.rows, shape.cols, shape.pitch, Role::input},
            {"values", DType::f32, shape.rows, shape.k, shape.k, Role::output},
            {"indices", DType::i32, shape.rows, shape.k, shape.k, Role::output}};
  }

  /// The fewest bytes through device memory: each element is read once, each result written once.
  double bytes() const {
    return 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) +
           8.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.k);
  }
  double flops() const { return 0; }

  /// Elements are moved and never computed, so the bounds are 0. The order has no ties: NaN comes
  /// before every number, then larger before smaller, and of equal elements (-0 and +0 are equal)
  /// the one with the lower index.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    std::vector<double> in(static_cast<std::size_t>(shape.cols));
    tensors["in"].read_row(row, shape.cols, in.data());
    std::vector<std::int64_t> order(in.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + shape.k, order.end(),
                      [&in](std::int64_t i, std::int64_t j) {
                        if (std::isnan(in[i]) != std::isnan(in[j])) return std::isnan(in[i]);
                        if (in[i] > in[j] || in[i] < in[j]) return in[i] > in[j];
                        return i < j;
                      });
    for (std::int64_t rank = 0; rank < shape.k; ++rank) {
      value[rank] = output == "values" ? in[order[rank]] : static_cast<double>(order[rank]);
      bound[rank] = 0;
    }
  }
};

struct Buffers {
  const float* in = nullptr;
  float* values = nullptr;
  std::int32_t* indices = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<float>("values"), at.get<std::int32_t>("indices")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::top_k
