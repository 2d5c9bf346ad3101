// SPDX-License-Identifier: MIT
// Level 4: a 64 x 64 tile: every thread has 8 loads in flight before the first one arrives.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

struct InFlightConfig {
  static constexpr int kTileRows = 64;  // a block transposes kTileRows x kTileCols elements of in
  static constexpr int kTileCols = 64;
  static constexpr int kThreadsX = 32;  // with kThreadsX x kThreadsY threads
  static constexpr int kThreadsY = 16;
};

// kWhole: the tile lies within the matrix. With a bounds check per load and store the predicate
// registers would not suffice, and the compiler would wait for early loads to free some.
template <class C, bool kWhole>
__device__ __forceinline__ void transpose_tile(const float* __restrict__ in,
                                               float* __restrict__ out, const Shape& shape,
                                               std::int64_t row0, std::int64_t col0,
                                               float (&tile)[C::kTileRows][C::kTileCols]) {
  constexpr int kRows = C::kTileRows / C::kThreadsY, kCols = C::kTileCols / C::kThreadsX;
  // [quote in_flight]
  float value[kRows][kCols];  // (rows, columns) per thread
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const int y = threadIdx.y + j * C::kThreadsY, x = threadIdx.x + i * C::kThreadsX;
      const std::int64_t row = row0 + y, col = col0 + x;
      const bool inside = kWhole || (row < shape.rows && col < shape.cols);
      value[j][i] = inside ? in[row * shape.in_pitch + col] : 0.0f;
    }
  }
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const int y = threadIdx.y + j * C::kThreadsY, x = threadIdx.x + i * C::kThreadsX;
      tile[y][x ^ (y & 31)] = value[j][i];
    }
  }
  // [end quote]
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int j = 0; j < C::kTileCols / C::kThreadsY; ++j) {
#pragma unroll
    for (int i = 0; i < C::kTileRows / C::kThreadsX; ++i) {
      const int y = threadIdx.y + j * C::kThreadsY, x = threadIdx.x + i * C::kThreadsX;
      const std::int64_t row = row0 + x, col = col0 + y;
      const bool inside = kWhole || (row < shape.rows && col < shape.cols);
      if (inside) out[col * shape.out_pitch + row] = tile[x][y ^ (x & 31)];
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreadsX* C::kThreadsY)
    in_flight_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTileRows, C::kTileCols);

  // (row, col ^ row % 32) of in; word (r, c) in bank c XOR r
  __shared__ float tile[C::kTileRows][C::kTileCols];

  if (row0 + C::kTileRows <= shape.rows && col0 + C::kTileCols <= shape.cols) {
    transpose_tile<C, true>(in, out, shape, row0, col0, tile);
  } else {
    transpose_tile<C, false>(in, out, shape, row0, col0, tile);
  }
}

struct InFlight : Level {
  using Config = InFlightConfig;
  static constexpr LevelText text{
      .name = "in_flight",
      .changed = "64 x 64 tiles: 8 independent loads per thread",
      .expect =
          "all loads in flight at once, and rows of 256 bytes on both sides: closer to the copy "
          "roof",
      .cost = "16 KB of shared memory, 8 registers for the tile",
  };

  static Claims claims(const Problem& p) {
    Claims claims = {shared_stores().conflict_free(), shared_loads().conflict_free()};
    if (p.shape.out_pitch % 8 == 0) {
      claims.push_back(global_loads("in").coalesced());
      claims.push_back(global_stores("out").coalesced());
      claims.push_back(faster_than_previous(1.1));
    } else {  // most rows start inside a sector: see level 6
      claims.push_back(global_stores("out").sectors_over_ideal(1.15, Relation::at_least));
    }
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(in_flight_transpose<Config>,
           {tile_grid(shape, Config::kTileRows, Config::kTileCols),
            dim3(Config::kThreadsX, Config::kThreadsY)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
