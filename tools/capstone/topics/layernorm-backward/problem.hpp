// SPDX-License-Identifier: MIT
// The problem: the backward pass of LayerNorm, fp32. The forward pass left the mean and the inverse
// standard deviation of every row. With n = (x - mean) * scale of row r and g = dy * weight:
//   dx      = scale * (g - mean over the row of g - n * mean over the row of g n)
//   dweight = sum over the rows of dy n
//   dbias   = sum over the rows of dy
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::layernorm_backward {

struct Shape {
  std::int64_t rows = 0, cols = 0;
  std::int64_t x_pitch = 0, dy_pitch = 0, dx_pitch = 0;  // at least cols
};

struct Problem {
  Shape shape;
  // The reference of dweight and dbias: sums of all rows, and of magnitudes.
  std::vector<double> dweight = {}, dweight_magnitude = {}, dbias = {}, dbias_magnitude = {};

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      throw BadSize("takes two sizes, rows x cols, both >= 0");
    }
    return {{size[0], size[1], size[1] + variant.of("x").extra_pitch,
             size[1] + variant.of("dy").extra_pitch, size[1] + variant.of("dx").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    const auto& [rows, cols, x_pitch, dy_pitch, dx_pitch] = shape;
    return {{"x", DType::f32, rows, cols, x_pitch, Role::input},
            {"dy", DType::f32, rows, cols, dy_pitch, Role::input},
            {"weight", DType::f32, 1, cols, cols, Role::input},
            {"mean", DType::f32, 1, rows, rows, Role::input},
            {"scale", DType::f32, 1, rows, rows, Role::input},
            {"dx", DType::f32, rows, cols, dx_pitch, Role::output},
            {"dweight", DType::f32, 1, cols, cols, Role::output},
            {"dbias", DType::f32, 1, cols, cols, Role::output}};
  }
  static constexpr bool kExactOnIntegers = false;  // a root and divisions

  /// What the forward pass leaves: it follows from x.
  void complete_inputs(HostTensors& tensors) const {
    const HostTensor& x = tensors["x"];
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      double sum = 0, squares = 0;
      const double count = static_cast<double>(std::max<std::int64_t>(shape.cols, 1));
      for (std::int64_t col = 0; col < shape.cols; ++col) sum += x.at(row, col);
      for (std::int64_t col = 0; col < shape.cols; ++col) {
        squares += (x.at(row, col) - sum / count) * (x.at(row, col) - sum / count);
      }
      tensors["mean"].set(0, row, sum / count);
      tensors["scale"].set(0, row, 1 / std::sqrt(squares / count + 1e-5));
    }
  }

  /// The fewest bytes through device memory: x and dy are read once, dx is written once, and so are
  /// the short vectors.
  double bytes() const {
    const double rows = static_cast<double>(shape.rows), cols = static_cast<double>(shape.cols);
    return 12 * rows * cols + 8 * rows + 12 * cols;
  }
  double flops() const { return 0; }

  /// n of an element, and a bound of its magnitude that holds for (x - mean) * scale and for
  /// x * scale - mean * scale alike.
  struct Normalised {
    double value, magnitude;
  };
  static Normalised normalised(const HostTensors& tensors, std::int64_t row, std::int64_t col) {
    const double x = tensors["x"].at(row, col), mean = tensors["mean"].at(0, row);
    const double scale = tensors["scale"].at(0, row);
    return {(x - mean) * scale, (std::fabs(x) + std::fabs(mean)) * scale};
  }

  void begin_reference(const HostTensors& tensors) {
    dweight.assign(static_cast<std::size_t>(shape.cols), 0);
    dweight_magnitude = dbias = dbias_magnitude = dweight;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      for (std::int64_t col = 0; col < shape.cols; ++col) {
        const double dy = tensors["dy"].at(row, col);
        const Normalised n = normalised(tensors, row, col);
        dweight[col] += dy * n.value, dweight_magnitude[col] += std::fabs(dy) * n.magnitude;
        dbias[col] += dy, dbias_magnitude[col] += std::fabs(dy);
      }
    }
  }

  /// Row `row` in fp64. A sum of m terms in any order is off by at most 4 sqrt(m) u times the sum
  /// of their magnitudes; each term and the final expression add at most eight roundings.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    const double u = unit_roundoff(DType::f32), least = half_ulp(DType::f32, 0);
    const auto& [rows, cols, x_pitch, dy_pitch, dx_pitch] = shape;
    if (output != "dx") {
      const bool is_weight = output == "dweight";
      const double error = (8 + 4 * std::sqrt(static_cast<double>(rows))) * u;
      for (std::int64_t col = 0; col < cols; ++col) {
        value[col] = is_weight ? dweight[col] : dbias[col];
        bound[col] = error * (is_weight ? dweight_magnitude[col] : dbias_magnitude[col]) +
                     static_cast<double>(rows) * least;
      }
      return;
    }
    const HostTensor &dy = tensors["dy"], &weight = tensors["weight"];
    double sum_g = 0, sum_gn = 0, magnitude_g = 0, magnitude_gn = 0;
    for (std::int64_t col = 0; col < cols; ++col) {
      const double g = dy.at(row, col) * weight.at(0, col);
      const Normalised n = normalised(tensors, row, col);
      sum_g += g, sum_gn += g * n.value;
      magnitude_g += std::fabs(g), magnitude_gn += std::fabs(g) * n.magnitude;
    }
    const double count = static_cast<double>(cols), scale = tensors["scale"].at(0, row);
    const double error = (8 + 4 * std::sqrt(count)) * u;
    for (std::int64_t col = 0; col < cols; ++col) {
      const double g = dy.at(row, col) * weight.at(0, col);
      const Normalised n = normalised(tensors, row, col);
      value[col] = scale * (g - sum_g / count - n.value * sum_gn / count);
      bound[col] =
          scale *
              (error * (std::fabs(g) + magnitude_g / count + n.magnitude * magnitude_gn / count) +
               (4 + n.magnitude) * count * least) +
          least;
    }
  }
};

struct Buffers {
  const float* x = nullptr;
  const float* dy = nullptr;
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
  float* dx = nullptr;
  float* dweight = nullptr;
  float* dbias = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("x"),      at.get<const float>("dy"),
            at.get<const float>("weight"), at.get<const float>("mean"),
            at.get<const float>("scale"),  at.get<float>("dx"),
            at.get<float>("dweight"),      at.get<float>("dbias")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::layernorm_backward
