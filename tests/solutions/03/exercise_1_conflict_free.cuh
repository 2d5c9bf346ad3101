// SPDX-License-Identifier: MIT
// Solution 3.1: rotate row r by r words. Word (r, c) lies in bank (c + r) % 32: distinct along a
// row and along a column.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

struct ConflictFreeConfig {
  static constexpr int kTile = 32;
  static constexpr int kThreadsY = 8;
};

/// Where element (row, col) of the tile is kept within row `row`.
// >>> your part
template <class C>
__device__ __forceinline__ int slot(int row, int col) {
  return (col + row) % C::kTile;
}
// <<< your part

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    conflict_free_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const unsigned tiles_across = tiles(shape.cols, C::kTile);
  const std::int64_t row0 = std::int64_t{blockIdx.x / tiles_across} * C::kTile;
  const std::int64_t col0 = std::int64_t{blockIdx.x % tiles_across} * C::kTile;
  const int x = threadIdx.x;

  __shared__ float tile[C::kTile][C::kTile];  // (row, slot) of in

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + x;
    if (row < shape.rows && col < shape.cols) {
      tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];
    }
  }
  __syncthreads();  // the tile is whole before any thread reads what others wrote
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + x, col = col0 + y;
    if (row < shape.rows && col < shape.cols) {
      out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];
    }
  }
}

struct ConflictFree : Level {
  using Config = ConflictFreeConfig;
  static constexpr LevelText text{
      .name = "conflict_free",
      .changed = "row r rotated by r words",
      .expect = "1 wavefront per load and per store",
      .cost = "4 KB of shared memory",
  };

  static Claims claims(const Problem&) {
    return {shared_loads().conflict_free(), shared_stores().conflict_free(),
            global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(conflict_free_transpose<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kThreadsY)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
