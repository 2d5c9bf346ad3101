// SPDX-License-Identifier: MIT
// Level 0: read along rows, write along columns.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    naive_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + threadIdx.x;
    if (row < shape.rows && col < shape.cols) {
      // [quote naive]
      const float value = in[row * shape.in_pitch + col];  // lanes side by side
      out[col * shape.out_pitch + row] = value;            // lanes a whole row apart
      // [end quote]
    }
  }
}

struct Naive : Level {
  using Config = SquareConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: loads along rows, stores along columns",
      .expect = "stores touch 32 sectors for 128 bytes: eight times the write traffic into L2",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").sectors_per_request(32),
            global_stores("out").sectors_over_ideal(8)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(naive_transpose<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kThreadsY)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
