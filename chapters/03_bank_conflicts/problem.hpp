// SPDX-License-Identifier: MIT
// Chapter 3's problem: out = transpose of in, fp32, any shape and any pitch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/03_bank_conflicts/reference.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::transpose {

/// Extents of `in`, and the pitches of both matrices in elements.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t in_pitch = 0;   // at least cols
  std::int64_t out_pitch = 0;  // at least rows
};

struct Problem {
  Shape shape;

  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 2 || size[0] < 0 || size[1] < 0) {
      throw BadSize("transpose takes two sizes, rows x cols, both >= 0");
    }
    return {{size[0], size[1], size[1] + variant.of("in").extra_pitch,
             size[0] + variant.of("out").extra_pitch}};
  }

  std::vector<TensorSpec> tensors() const {
    return {{"in", DType::f32, shape.rows, shape.cols, shape.in_pitch, Role::input},
            {"out", DType::f32, shape.cols, shape.rows, shape.out_pitch, Role::output}};
  }

  double bytes() const {  // each element read once and written once
    return 2.0 * 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  }
  double flops() const { return 0; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    transposed_row(tensors["in"], row, value, bound);
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
  return static_cast<unsigned>(ceil_div(extent, tile));
}

/// Where a block's tile begins, in `in`.
struct Origin {
  std::int64_t row, col;
};

/// The tile of block `block`. Blocks are numbered row by row. Only x is used, because a grid's y
/// ends at 65,535.
__host__ __device__ inline Origin tile_origin(unsigned block, const Shape& shape, int tile_rows,
                                              int tile_cols) {
  const unsigned tiles_across = tiles(shape.cols, tile_cols);
  return {std::int64_t{block / tiles_across} * tile_rows,
          std::int64_t{block % tiles_across} * tile_cols};
}
inline dim3 tile_grid(const Shape& shape, int tile_rows, int tile_cols) {
  return dim3(tiles(shape.rows, tile_rows) * tiles(shape.cols, tile_cols));
}

/// What levels 0 to 3 and exercise 3.2 share.
struct SquareConfig {
  static constexpr int kTile = 32;     // a block transposes kTile x kTile elements
  static constexpr int kThreadsY = 8;  // with kTile x kThreadsY threads
};

/// Launches their kernels, as level 0 does.
inline void launch_squares(void (*kernel)(const float*, float*, Shape), const Level::Plan& plan,
                           Stream stream) {
  using C = SquareConfig;
  const Shape& shape = plan.problem.shape;
  launch(kernel, {tile_grid(shape, C::kTile, C::kTile), dim3(C::kTile, C::kThreadsY)}, stream,
         plan.buffers.in, plan.buffers.out, shape);
}

}  // namespace cookbook::transpose
