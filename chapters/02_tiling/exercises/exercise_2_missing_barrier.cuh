// SPDX-License-Identifier: MIT
// Exercise 2.2, a kernel with a planted bug: level 2 with deeper tiles. On most GPUs and for most
// sizes it usually gives the right answer.
//
// Grade it and read what the checker says (it names the source lines). Explain on paper which
// accesses of which two threads race, and repair it with one line. The claims must still hold.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct MissingBarrierConfig {
  static constexpr int kM = 16, kN = 32, kK = 32;  // tile of C per block, and steps of k per tile
};

template <class C>
__global__ void __launch_bounds__(C::kM* C::kN)
    missing_barrier_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                           const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                           int64_t ldc) {
  __shared__ float a_tile[C::kM][C::kK];
  __shared__ float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  const int ty = static_cast<int>(threadIdx.y), tx = static_cast<int>(threadIdx.x);
  const int row = tile_row + ty;
  const int col = tile_col + tx;

  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    a_tile[ty][tx] = row < m && k0 + tx < k ? a[row * lda + k0 + tx] : 0.0f;
    for (int i = ty; i < C::kK; i += C::kM) {
      b_tile[i][tx] = k0 + i < k && col < n ? b[(k0 + i) * ldb + col] : 0.0f;
    }
    __syncthreads();

#pragma unroll
    for (int p = 0; p < C::kK; ++p) sum += a_tile[ty][p] * b_tile[p][tx];
  }
  if (row < m && col < n) c[row * ldc + col] = sum;
}

struct MissingBarrier : Level {
  static constexpr LevelText text{
      .name = "missing_barrier",
      .changed = "a 16 x 32 tile of C per block, and a bug",
      .expect = "right results, no race, no bank conflict - once repaired",
      .cost = "6 KB of shared memory",
  };

  static Claims claims(const Problem& p) {
    using C = MissingBarrierConfig;
    return {shared_loads().conflict_free(), shared_stores().conflict_free(),
            global_loads("a").bytes(a_bytes<C>(p)), global_loads("b").bytes(b_bytes<C>(p))};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = MissingBarrierConfig;
    launch_tiles<C>(missing_barrier_kernel<C>, dim3(C::kN, C::kM), plan, stream);
  }
};

}  // namespace cookbook::sgemm
