// SPDX-License-Identifier: MIT
// Level 0: one thread computes one element of C; the lanes of a warp run down a column.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct NaiveConfig {
  static constexpr int kM = 32, kN = 32;  // tile of C per block
};

template <class C>
__global__ void __launch_bounds__(C::kM* C::kN)
    naive_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                 const float* __restrict__ b, int64_t ldb, float* __restrict__ c, int64_t ldc) {
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  // [quote naive]
  const int row =
      tile_row + static_cast<int>(threadIdx.x);  // neighbouring lanes: neighbouring rows
  const int col = tile_col + static_cast<int>(threadIdx.y);
  if (row >= m || col >= n) return;

  float sum = 0;
  for (int p = 0; p < k; ++p) {
    sum += a[row * lda + p] * b[p * ldb + col];
  }
  // [end quote]
  c[row * ldc + col] = sum;
}

struct Naive : Level {
  static constexpr LevelText text{
      .name = "naive",
      .changed = "one thread per element of C, lanes along a column (on purpose)",
      .expect =
          "every warp-wide load of A touches 32 rows, so 32 sectors for 128 useful bytes: far "
          "below both roofs",
      .cost = "nothing: no shared memory, few registers",
  };

  static Claims claims(const Problem&) {
    return {global_loads("a").sectors_per_request(32), global_loads("b").sectors_per_request(1),
            global_stores("c").sectors_per_request(32)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = NaiveConfig;
    launch_tiles<C>(naive_kernel<C>, dim3(C::kM, C::kN), plan, stream);
  }
};

}  // namespace cookbook::sgemm
