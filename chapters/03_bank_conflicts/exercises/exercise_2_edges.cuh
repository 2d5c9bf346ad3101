// SPDX-License-Identifier: MIT
// Exercise 3.2: this transpose is right when both extents are multiples of 32. Find and repair the
// planted bug: which elements does no thread write otherwise, and why does the same line endanger
// the barrier?
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    edges_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);
  const int x = threadIdx.x;
  if (row0 + threadIdx.y >= shape.rows || col0 + x >= shape.cols) return;  // nothing to load

  __shared__ float tile[C::kTile][C::kTile + 1];  // (row, col) of in

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + x;
    if (row < shape.rows && col < shape.cols) tile[y][x] = in[row * shape.in_pitch + col];
  }
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + x, col = col0 + y;
    if (row < shape.rows && col < shape.cols) {
      out[col * shape.out_pitch + row] = tile[x][y];
    }
  }
}

struct Edges : Level {
  using Config = SquareConfig;
  static constexpr LevelText text{
      .name = "edges",
      .changed = "the padded transpose, with a bug",
      .expect = "every element written, whatever the shape",
  };

  static Claims claims(const Problem&) {
    return {shared_loads().conflict_free(), global_loads("in").coalesced(),
            global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_squares(edges_transpose<Config>, plan, stream);
  }
};

}  // namespace cookbook::transpose
