// SPDX-License-Identifier: MIT
// The problem: one step of the heat equation on a grid in 3-D, with seven points. fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::stencil {

/// out = in + kRate * (the sum of the six neighbours - 6 in). A power of two: multiplying by it
/// makes no error.
inline constexpr float kRate = 0.125f;

/// Extents of the grid; point (z, y, x) is element x of row z * ny + y.
struct Shape {
  std::int64_t nz = 0, ny = 0, nx = 0;
  std::int64_t in_pitch = 0, out_pitch = 0;  // at least nx
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 3 || size[0] < 0 || size[1] < 0 || size[2] < 0) {
      throw BadSize("takes three sizes, nz x ny x nx, all >= 0");
    }
    return {{size[0], size[1], size[2], size[2] + variant.of("in").extra_pitch,
             size[2] + variant.of("out").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    const std::int64_t rows = shape.nz * shape.ny;
    return {{"in", DType::f32, rows, shape.nx, shape.in_pitch, Role::input},
            {"out", DType::f32, rows, shape.nx, shape.out_pitch, Role::output}};
  }

  double points() const {
    return static_cast<double>(shape.nz) * static_cast<double>(shape.ny) *
           static_cast<double>(shape.nx);
  }
  /// The fewest bytes through device memory: each point is read once and written once.
  double bytes() const { return 8.0 * points(); }
  double flops() const { return 8.0 * points(); }

  /// A row in fp64. A result takes at most ten roundings, each of at most the unit roundoff times
  /// the sum of all magnitudes; where the result is denormal, half of the smallest number.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    const std::int64_t z = row / shape.ny, y = row % shape.ny;
    const auto at = [&](std::int64_t dz, std::int64_t dy, std::int64_t x) {
      const bool is_inside = z + dz >= 0 && z + dz < shape.nz && y + dy >= 0 && y + dy < shape.ny &&
                             x >= 0 && x < shape.nx;
      return is_inside ? in.at(row + dz * shape.ny + dy, x) : 0.0;  // cold outside
    };
    for (std::int64_t x = 0; x < shape.nx; ++x) {
      const double centre = at(0, 0, x);
      const double around[] = {at(-1, 0, x), at(1, 0, x),     at(0, -1, x),
                               at(0, 1, x),  at(0, 0, x - 1), at(0, 0, x + 1)};
      double sum = 0, magnitude = 7 * std::fabs(centre);
      for (const double each : around) sum += each, magnitude += std::fabs(each);
      value[x] = centre + kRate * (sum - 6 * centre);
      bound[x] = 10 * unit_roundoff(DType::f32) * magnitude + 2 * half_ulp(DType::f32, 0);
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

}  // namespace cookbook::stencil
