// SPDX-License-Identifier: MIT
// Level 1: the block copies a tile of A and of B to shared memory and reads operands from there.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct SharedTileConfig {
  static constexpr int kTile = 32;  // a block computes kTile x kTile elements, one per thread
};

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kTile)
    shared_tile(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                Problem p) {
  __shared__ float a_tile[C::kTile][C::kTile];
  __shared__ float b_tile[C::kTile][C::kTile];
  const int tiles_across = static_cast<int>(ceil_div<std::int64_t>(p.n, C::kTile));
  const int tile = static_cast<int>(blockIdx.x);
  const int ty = static_cast<int>(threadIdx.y), tx = static_cast<int>(threadIdx.x);
  const std::int64_t row = std::int64_t{tile / tiles_across} * C::kTile + ty;
  const std::int64_t col = std::int64_t{tile % tiles_across} * C::kTile + tx;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < p.k; k0 += C::kTile) {
    // Elements out of bounds are zero-filled and add nothing to any sum.
    const bool a_inside = row < p.m && k0 + tx < p.k;
    const bool b_inside = k0 + ty < p.k && col < p.n;
    a_tile[ty][tx] = a_inside ? a[row * p.lda + k0 + tx] : 0.0f;    // [copy]
    b_tile[ty][tx] = b_inside ? b[(k0 + ty) * p.ldb + col] : 0.0f;  // [copy]
    __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
    for (int i = 0; i < C::kTile; ++i) sum += a_tile[ty][i] * b_tile[i][tx];  // [product]
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  if (row < p.m && col < p.n) c[row * p.ldc + col] = sum;
}

struct SharedTile : Level {
  using Config = SharedTileConfig;
  static constexpr LevelText text{
      .name = "shared_tile",
      .changed = "tiles of A and B in shared memory: each global word is read once per block",
      .expect = "32 times fewer global loads; now bound by two shared loads per FMA",
      .cost = "8 KB of shared memory, two barriers per tile",
  };

  static Claims claims(const Problem& p) {
    const double tiles_down = static_cast<double>(ceil_div<std::int64_t>(p.m, Config::kTile));
    const double tiles_across = static_cast<double>(ceil_div<std::int64_t>(p.n, Config::kTile));
    return {global_loads("a").bytes(4.0 * static_cast<double>(p.m * p.k) * tiles_across),
            global_loads("b").bytes(4.0 * static_cast<double>(p.k * p.n) * tiles_down),
            shared_loads().conflict_free(), shared_stores().conflict_free(),
            faster_than_previous(1.1)};
  }

  static void run(const Plan& plan, Stream stream) {
    launch(
        shared_tile<Config>,
        {tile_grid(plan.problem, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kTile)},
        stream, plan.buffers.a, plan.buffers.b, plan.buffers.c, plan.problem);
  }
};

}  // namespace cookbook::mine
