// SPDX-License-Identifier: MIT
// Level 1: transpose a tile in shared memory, so that loads and stores both run along rows.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    tile_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);

  __shared__ float tile[C::kTile][C::kTile];  // (row, col) of in

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + threadIdx.x;
    if (row < shape.rows && col < shape.cols) {
      // [quote tile]
      tile[y][threadIdx.x] = in[row * shape.in_pitch + col];
      // [end quote]
    }
  }
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + threadIdx.x, col = col0 + y;
    if (row < shape.rows && col < shape.cols) {
      // [quote read_back]
      out[col * shape.out_pitch + row] = tile[threadIdx.x][y];
      // [end quote]
    }
  }
}

struct Tile : Level {
  using Config = SquareConfig;
  static constexpr LevelText text{
      .name = "tile",
      .changed = "a 32 x 32 tile in shared memory: stores along rows too",
      .expect =
          "ideal global traffic on both sides; but a column of the tile is in one bank: 32 "
          "wavefronts",
      .cost = "4 KB of shared memory, a barrier",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            shared_stores().conflict_free(), shared_loads().wavefronts_per_request(32),
            faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_squares(tile_transpose<Config>, plan, stream);
  }
};

}  // namespace cookbook::transpose
