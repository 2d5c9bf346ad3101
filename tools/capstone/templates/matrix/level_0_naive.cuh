// SPDX-License-Identifier: MIT
// Level 0: one thread per element; the lanes of a warp run down a column.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct NaiveConfig {
  static constexpr int kTile = 32;  // a block computes kTile x kTile elements, one per thread
};

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kTile)
    naive(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const unsigned tiles_across = tiles(shape.cols, C::kTile);
  const std::int64_t row = std::int64_t{blockIdx.x / tiles_across} * C::kTile + threadIdx.x;
  const std::int64_t col = std::int64_t{blockIdx.x % tiles_across} * C::kTile + threadIdx.y;
  if (row >= shape.rows || col >= shape.cols) return;
  const float* at = in + row * shape.in_pitch + col;  // stride between lanes: a whole row
  float sum = *at;                                    // [centre]
  if (row > 0) sum += at[-shape.in_pitch];
  if (row + 1 < shape.rows) sum += at[shape.in_pitch];
  if (col > 0) sum += at[-1];
  if (col + 1 < shape.cols) sum += at[1];
  out[row * shape.out_pitch + col] = sum;  // [store]
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per element, lanes down a column",
      .expect = "a warp touches 32 sectors per access, 8 times what it needs: far below the roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").on("centre").sectors_per_request(32),
            global_stores("out").sectors_per_request(32)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(naive<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kTile)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::mine
