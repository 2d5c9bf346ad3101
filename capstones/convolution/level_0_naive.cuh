// SPDX-License-Identifier: MIT
// Level 0: one thread per element of the result. It loads its window and the filter from device
// memory.
#pragma once

#include "problem.hpp"

namespace cookbook::convolution {

struct NaiveConfig {
  static constexpr int kTileRows = 8, kTileCols = 32;  // of a block, one thread per element
};

template <class C>
__global__ void __launch_bounds__(C::kTileRows* C::kTileCols)
    naive_convolution(const float* __restrict__ in, const float* __restrict__ filter,
                      float* __restrict__ out, Shape shape) {
  const unsigned across = tiles(shape.cols, C::kTileCols);
  const int row = static_cast<int>(blockIdx.x / across) * C::kTileRows + threadIdx.y;
  const int col = static_cast<int>(blockIdx.x % across) * C::kTileCols + threadIdx.x;
  if (row >= shape.rows || col >= shape.cols) return;
  float sum = 0;
#pragma unroll
  for (int dy = 0; dy < kSide; ++dy) {
    const int r = row + dy - kRadius;
#pragma unroll
    for (int dx = 0; dx < kSide; ++dx) {
      const int c = col + dx - kRadius;
      float value = 0;
      if (r >= 0 && r < shape.rows && c >= 0 && c < shape.cols) value = in[r * shape.in_pitch + c];
      sum += filter[dy * kSide + dx] * value;
    }
  }
  out[row * shape.out_pitch + col] = sum;  // [store]
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per element, 25 loads each",
      .expect =
          "L1 serves most of the loads, but 50 of them per element, filter included, take 50 "
          "cycles "
          "of an SM per warp: a quarter of the roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem& p) {
    const double rows = p.shape.rows, cols = p.shape.cols;
    // Each of the five shifts has a row or column less for each step away from the centre.
    const double inside = (kSide * rows - 6) * (kSide * cols - 6);
    return {global_loads("in").bytes(4 * inside),
            global_loads("filter").requests(kSide * kSide * rows * cols / 32),
            global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(naive_convolution<Config>,
           {dim3(tile_count(shape, Config::kTileRows, Config::kTileCols)),
            dim3(Config::kTileCols, Config::kTileRows)},
           stream, plan.buffers.in, plan.buffers.filter, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::convolution
