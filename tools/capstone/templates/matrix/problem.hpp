// SPDX-License-Identifier: MIT
// The problem: out[r][c] = in[r][c] + its four neighbours, fp32, any shape and any pitch. Outside
// the matrix there are zeros.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::mine {

/// Extents of both matrices, and their pitches in elements.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t in_pitch = 0;   // at least cols
  std::int64_t out_pitch = 0;  // at least cols
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      throw BadSize("takes two sizes, rows x cols, both >= 0");
    }
    return {{size[0], size[1], size[1] + variant.of("in").extra_pitch,
             size[1] + variant.of("out").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, shape.rows, shape.cols, shape.in_pitch, Role::input},
            {"out", DType::f32, shape.rows, shape.cols, shape.out_pitch, Role::output}};
  }

  /// The fewest bytes through device memory: each element is read once and written once.
  double bytes() const {
    return 2.0 * 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  }
  /// Floating-point operations; 0 where the bytes are what counts.
  double flops() const { return 0; }

  /// Row `row` of the output `out` in fp64, and how far an fp32 sum of the same five terms, in any
  /// order, may be from it: four roundings.
  void reference_row(const HostTensors& tensors, const std::string& /*output*/, std::int64_t row,
                     double* value, double* bound) const {
    const HostTensor& in = tensors["in"];
    const auto at = [&](std::int64_t r, std::int64_t c) {
      return r < 0 || r >= shape.rows || c < 0 || c >= shape.cols ? 0.0 : in.at(r, c);
    };
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      const double terms[] = {at(row, col), at(row - 1, col), at(row + 1, col), at(row, col - 1),
                              at(row, col + 1)};
      value[col] = 0;
      double magnitude = 0;
      for (const double term : terms) value[col] += term, magnitude += std::fabs(term);
      bound[col] = 4 * unit_roundoff(DType::f32) * magnitude + half_ulp(DType::f32, 0);
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

/// Tiles of `tile` elements that cover `extent`.
__host__ __device__ constexpr unsigned tiles(std::int64_t extent, int tile) {
  return static_cast<unsigned>(ceil_div(extent, std::int64_t{tile}));
}

/// One block per tile, numbered row by row. Only x is used, because a grid's y ends at 65,535.
inline dim3 tile_grid(const Shape& shape, int tile_rows, int tile_cols) {
  return dim3(tiles(shape.rows, tile_rows) * tiles(shape.cols, tile_cols));
}

}  // namespace cookbook::mine
