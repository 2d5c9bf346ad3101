// SPDX-License-Identifier: MIT
// The problem: every element of an image becomes the weighted sum of the 5 x 5 elements around it,
// fp32, any shape and any pitch. Outside the image there are zeros.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::convolution {

constexpr int kRadius = 2;
constexpr int kSide = 2 * kRadius + 1;  // of the filter, which is a kSide x kSide matrix

/// Extents of the image and of the result, and their pitches in elements.
struct Shape {
  int rows = 0;
  int cols = 0;
  std::int64_t in_pitch = 0;   // at least cols
  std::int64_t out_pitch = 0;  // at least cols
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 64;
    if (size.size() != 2 || size[0] < 0 || size[1] < 0 || size[0] > kMost || size[1] > kMost ||
        static_cast<double>(size[0]) * static_cast<double>(size[1]) > std::pow(2.0, 36)) {
      throw BadSize("takes two sizes, rows x cols, both >= 0, with at most 2^36 elements");
    }
    return {{static_cast<int>(size[0]), static_cast<int>(size[1]),
             size[1] + variant.of("in").extra_pitch, size[1] + variant.of("out").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, shape.rows, shape.cols, shape.in_pitch, Role::input},
            {"filter", DType::f32, kSide, kSide, kSide, Role::input},
            {"out", DType::f32, shape.rows, shape.cols, shape.out_pitch, Role::output}};
  }

  /// The fewest bytes through device memory: the image and the filter are read once, the result is
  /// written once.
  double bytes() const {
    return 4.0 * (2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols) +
                  kSide * kSide);
  }
  double flops() const { return 0; }

  /// Row `row` of the result in fp64, and how far an fp32 sum of the same terms may be from it: a
  /// term takes part in at most one rounding per addition and one of its own.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor &in = tensors["in"], &filter = tensors["filter"];
    const auto at = [&](std::int64_t r, std::int64_t c) {
      return r < 0 || r >= shape.rows || c < 0 || c >= shape.cols ? 0.0 : in.at(r, c);
    };
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      double sum = 0, magnitude = 0;
      for (int dy = 0; dy < kSide; ++dy) {
        for (int dx = 0; dx < kSide; ++dx) {
          const double term = filter.at(dy, dx) * at(row + dy - kRadius, col + dx - kRadius);
          sum += term, magnitude += std::fabs(term);
        }
      }
      value[col] = sum;
      bound[col] =
          (kSide * kSide + 1) * (unit_roundoff(DType::f32) * magnitude + half_ulp(DType::f32, 0));
    }
  }
};

struct Buffers {
  const float* in = nullptr;
  const float* filter = nullptr;
  float* out = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const float>("in"), at.get<const float>("filter"), at.get<float>("out")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Tiles of `tile` elements that cover `extent`.
__host__ __device__ constexpr unsigned tiles(int extent, int tile) {
  return (static_cast<unsigned>(extent) + static_cast<unsigned>(tile) - 1) /
         static_cast<unsigned>(tile);
}

/// Tiles of the result, numbered row by row. They are blocks in x, because a grid's y ends at
/// 65,535.
inline unsigned tile_count(const Shape& shape, int tile_rows, int tile_cols) {
  return tiles(shape.rows, tile_rows) * tiles(shape.cols, tile_cols);
}

}  // namespace cookbook::convolution
