// SPDX-License-Identifier: MIT
// The problem: the acceleration of each of n bodies by the gravity of all. fp32.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::n_body {

/// Added to the square of every distance, so that a body next to another one is not thrown out of
/// the system, and a body's own term is 0 and not 0 / 0.
inline constexpr float kSoftening = 0x1p-10f;

/// Row 0 to 2 of `bodies` are the coordinates, row 3 the masses.
struct Shape {
  std::int64_t n = 0;
  std::int64_t bodies_pitch = 0;         // at least n
  std::int64_t accelerations_pitch = 0;  // at least 3
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 1 || size[0] < 0 || size[0] >= std::int64_t{1} << 31) {
      throw BadSize("takes one size, 0 <= n < 2^31 bodies");
    }
    return {{size[0], size[0] + variant.of("bodies").extra_pitch,
             3 + variant.of("accelerations").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec bodies{"bodies", DType::f32, 4, shape.n, shape.bodies_pitch, Role::input};
    bodies.fill = [](HostTensor& tensor, std::uint64_t seed) {
      for (std::int64_t row = 0; row < 4; ++row) {  // a cube of unit size; masses of 1/2 to 3/2
        for (std::int64_t i = 0; i < tensor.spec.cols; ++i) {
          const std::uint64_t bits =
              mix_bits((seed << 40) + static_cast<std::uint64_t>(4 * i + row));
          tensor.set(row, i, static_cast<double>(bits >> 40) * 0x1p-24 + (row == 3 ? 0.5 : 0));
        }
      }
    };
    return {bodies,
            {"accelerations", DType::f32, shape.n, 3, shape.accelerations_pitch, Role::output}};
  }
  static constexpr bool kExactOnIntegers = false;  // a division and a root; and it fills itself

  /// The fewest bytes through device memory: each body is read once, its acceleration written once.
  double bytes() const { return 28.0 * static_cast<double>(shape.n); }
  /// 19 per pair: 3 subtractions, 3 FMA for the square of the distance, a root, 3 multiplications,
  /// 3 FMA for the sums.
  double flops() const {
    return 19.0 * static_cast<double>(shape.n) * static_cast<double>(shape.n);
  }

  /// The acceleration of body `row` in fp64. A term's relative error in fp32 is at most 32 unit
  /// roundoffs: that of the difference, twice in the square; of the root, at most 2 ulp, three
  /// times in the cube; of four multiplications. The errors of the sum grow as the root of its
  /// length.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& bodies = tensors["bodies"];
    double sum[3] = {}, magnitude[3] = {};
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double difference[3], square = kSoftening;
      for (int axis = 0; axis < 3; ++axis) {
        difference[axis] = bodies.at(axis, j) - bodies.at(axis, row);
        square += difference[axis] * difference[axis];
      }
      const double scale = bodies.at(3, j) / (square * std::sqrt(square));
      for (int axis = 0; axis < 3; ++axis) {
        sum[axis] += difference[axis] * scale;
        magnitude[axis] += std::fabs(difference[axis] * scale);
      }
    }
    const double roundings = 32 + 4 * std::sqrt(static_cast<double>(shape.n));
    for (int axis = 0; axis < 3; ++axis) {
      value[axis] = sum[axis];
      bound[axis] = roundings * unit_roundoff(DType::f32) * magnitude[axis];
    }
  }
};

struct Buffers {
  const float* bodies = nullptr;
  float* accelerations = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("bodies"), at.get<float>("accelerations")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::n_body
