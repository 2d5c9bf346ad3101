// SPDX-License-Identifier: MIT
// Exercise 3.1: this transpose is right, but every load from its tile takes 32 wavefronts. Fill in
// `slot` so that neither its stores nor its loads conflict. The tile stays 32 x 32 words: no
// padding. Do not use XOR either: level 3 has done that (the grader does not check this). Stuck?
// `./run exercise 3.1 --hint`.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

struct ConflictFreeConfig {
  static constexpr int kTile = 32;
  static constexpr int kThreadsY = 8;
};

/// Where element (row, col) of the tile is stored within row `row`: your part.
// >>> your part
template <class C>
__device__ __forceinline__ int slot(int /*row*/, int col) {
  return col;
}
// <<< your part

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    conflict_free_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const unsigned tiles_across = tiles(shape.cols, C::kTile);
  const std::int64_t row0 = std::int64_t{blockIdx.x / tiles_across} * C::kTile;
  const std::int64_t col0 = std::int64_t{blockIdx.x % tiles_across} * C::kTile;
  const int x = threadIdx.x;

  __shared__ float tile[C::kTile][C::kTile];  // (row, `slot`) of in

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + x;
    if (row < shape.rows && col < shape.cols) {
      tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];
    }
  }
  __syncthreads();  // the tile is complete before any thread reads it
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
      .changed = "your own placement of a row's columns",
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
