// SPDX-License-Identifier: MIT
// Level 0: one thread computes one element of C and reads its operands from global memory.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct NaiveConfig {
  static constexpr int kTile = 32;  // a block computes kTile x kTile elements, one per thread
};

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kTile)
    naive(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
          Problem p) {
  const int tiles_across = static_cast<int>(ceil_div<std::int64_t>(p.n, C::kTile));
  const int tile = static_cast<int>(blockIdx.x);
  const std::int64_t row = std::int64_t{tile / tiles_across} * C::kTile + threadIdx.y;
  const std::int64_t col = std::int64_t{tile % tiles_across} * C::kTile + threadIdx.x;
  if (row >= p.m || col >= p.n) return;
  float sum = 0;
  for (std::int64_t i = 0; i < p.k; ++i) {
    sum += a[row * p.lda + i] * b[i * p.ldb + col];
  }
  c[row * p.ldc + col] = sum;
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per element of C, operands from global memory",
      .expect = "two loads per FMA: far below the roof, however fast the caches are",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("a").sectors_per_request(1), global_loads("b").sectors_per_request(4),
            global_stores("c").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    launch(
        naive<Config>,
        {tile_grid(plan.problem, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kTile)},
        stream, plan.buffers.a, plan.buffers.b, plan.buffers.c, plan.problem);
  }
};

}  // namespace cookbook::mine
