// SPDX-License-Identifier: MIT
// Exercise 2.1, a kernel with a hole: level 3 rotated by 90 degrees. Each thread computes 8
// elements of one ROW of C, so one word of A serves 8 FMAs.
//
// Complete the multiplication between the two barriers. Meet the claims: 9 words read from shared
// memory per 8 FMAs, and no bank conflict. Which columns may a thread compute so that the lanes of
// a warp read neighbouring words of b_tile? The stores at the end already assume an answer.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct RowTileConfig {
  static constexpr int kM = 64, kN = 64, kK = 8;  // tile of C per block, and steps of k per tile
  static constexpr int kThreadN = 8;              // elements of C per thread: part of a row
  static constexpr int kThreads = kM * kN / kThreadN;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    row_tile_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                    const float* __restrict__ b, int64_t ldb, float* __restrict__ c, int64_t ldc) {
  static_assert(C::kM * C::kK == C::kThreads && C::kK * C::kN == C::kThreads, "one element each");
  __shared__ float a_tile[C::kM][C::kK];
  __shared__ float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  // This thread computes columns tx, tx + kStepN, tx + 2 kStepN ... of row ty.
  constexpr int kStepN = C::kN / C::kThreadN;
  const int ty = tid / kStepN, tx = tid % kStepN;
  float acc[C::kThreadN] = {};  // (columns)

  for (int k0 = 0; k0 < k; k0 += C::kK) {
    const int a_row = tid / C::kK, a_col = tid % C::kK;
    const int b_row = tid / C::kN, b_col = tid % C::kN;
    const bool a_inside = tile_row + a_row < m && k0 + a_col < k;
    const bool b_inside = k0 + b_row < k && tile_col + b_col < n;
    a_tile[a_row][a_col] = a_inside ? a[(tile_row + a_row) * lda + k0 + a_col] : 0.0f;
    b_tile[b_row][b_col] = b_inside ? b[(k0 + b_row) * ldb + tile_col + b_col] : 0.0f;
    __syncthreads();

    acc[0] += a_tile[ty][0] * b_tile[0][tx];  // your code here: one of kK * kThreadN FMAs

    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < C::kThreadN; ++j) {
    const int row = tile_row + ty, col = tile_col + tx + j * kStepN;
    if (row < m && col < n) c[row * ldc + col] = acc[j];
  }
}

struct RowTile : Level {
  static constexpr LevelText text{
      .name = "row_tile",
      .changed = "8 elements of a row of C per thread instead of a column",
      .expect = "the same shared traffic as register_1d: 9 words for 8 FMAs",
      .cost = "one warp now spans four rows of C: stores of 32 bytes per row",
  };

  static Claims claims(const Problem& p) {
    using C = RowTileConfig;
    return {shared_loads().conflict_free(),
            shared_loads().bytes(4.0 * static_cast<double>(p.m * p.n * p.k) * (C::kThreadN + 1) /
                                 C::kThreadN),
            global_loads("a").bytes(a_bytes<C>(p)), global_loads("b").bytes(b_bytes<C>(p))};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = RowTileConfig;
    launch_tiles<C>(row_tile_kernel<C>, dim3(C::kThreads), plan, stream);
  }
};

}  // namespace cookbook::sgemm
