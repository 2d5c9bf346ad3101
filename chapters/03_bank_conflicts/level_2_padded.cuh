// SPDX-License-Identifier: MIT
// Level 2: one unused word per row, so that a column of the tile covers every bank.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    padded_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);

  // [quote padded]
  __shared__ float tile[C::kTile][C::kTile + 1];  // (row, col) of in; word (r, c) in bank r + c
  // [end quote]

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + threadIdx.x;
    if (row < shape.rows && col < shape.cols) {
      tile[y][threadIdx.x] = in[row * shape.in_pitch + col];
    }
  }
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + threadIdx.x, col = col0 + y;
    if (row < shape.rows && col < shape.cols) {
      out[col * shape.out_pitch + row] = tile[threadIdx.x][y];
    }
  }
}

struct Padded : Level {
  using Config = SquareConfig;
  static constexpr LevelText text{
      .name = "padded",
      .changed = "tile[32][33]: each row starts one bank further on",
      .expect =
          "reading a column takes 1 wavefront instead of 32: shared memory is no longer the limit",
      .cost = "128 unused bytes of shared memory",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(),           global_stores("out").coalesced(),
            shared_stores().conflict_free(),          shared_loads().conflict_free(),
            shared_loads().wavefronts_per_request(1), faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_squares(padded_transpose<Config>, plan, stream);
  }
};

}  // namespace cookbook::transpose
