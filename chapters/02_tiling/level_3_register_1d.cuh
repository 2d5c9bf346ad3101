// SPDX-License-Identifier: MIT
// Level 3: each thread computes a column of 8 elements of C, so one word of B serves 8 FMAs.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct Register1dConfig {
  static constexpr int kM = 64, kN = 64, kK = 8;  // tile of C per block, and steps of k per tile
  static constexpr int kThreadM = 8;              // elements of C per thread: a column
  static constexpr int kThreads = kM * kN / kThreadM;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    register_1d_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                       const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                       int64_t ldc) {
  static_assert(C::kM * C::kK == C::kThreads && C::kK * C::kN == C::kThreads, "one element each");
  __shared__ float a_tile[C::kM][C::kK];
  __shared__ float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  // This thread computes rows ty, ty + kStepM, ty + 2 kStepM ... of column tx.
  constexpr int kStepM = C::kM / C::kThreadM;
  const int ty = tid / C::kN, tx = tid % C::kN;
  float acc[C::kThreadM] = {};  // (rows)

  for (int k0 = 0; k0 < k; k0 += C::kK) {
    // Global to shared: the tile is distributed over all threads in row-major order.
    const int a_row = tid / C::kK, a_col = tid % C::kK;
    const int b_row = tid / C::kN, b_col = tid % C::kN;
    const bool a_inside = tile_row + a_row < m && k0 + a_col < k;
    const bool b_inside = k0 + b_row < k && tile_col + b_col < n;
    a_tile[a_row][a_col] = a_inside ? a[(tile_row + a_row) * lda + k0 + a_col] : 0.0f;  // [copy]
    b_tile[b_row][b_col] = b_inside ? b[(k0 + b_row) * ldb + tile_col + b_col] : 0.0f;  // [copy]
    __syncthreads();

#pragma unroll
    // [quote register_1d]
    for (int p = 0; p < C::kK; ++p) {
      const float b_value = b_tile[p][tx];  // one load ...
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
        acc[i] += a_tile[ty + i * kStepM][p] * b_value;  // ... for kThreadM FMAs
      }
    }
    // [end quote]
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i) {
    const int row = tile_row + ty + i * kStepM, col = tile_col + tx;
    if (row < m && col < n) c[row * ldc + col] = acc[i];
  }
}

struct Register1d : Level {
  static constexpr LevelText text{
      .name = "register_1d",
      .changed = "8 elements of C per thread, a column, in registers",
      .expect =
          "9 shared words for 8 FMAs instead of 16, and A's come four at a time: about twice "
          "shared_tile",
      .cost = "8 accumulators; the tile grows to 64 x 64",
  };

  static Claims claims(const Problem& p) {
    using C = Register1dConfig;
    return {global_loads("a").bytes(a_bytes<C>(p)), global_loads().coalesced(),
            shared_loads().conflict_free(),
            shared_loads().bytes(4.0 * static_cast<double>(p.m * p.n * p.k) * (C::kThreadM + 1) /
                                 C::kThreadM),
            faster_than_previous(1.4)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = Register1dConfig;
    launch_tiles<C>(register_1d_kernel<C>, dim3(C::kThreads), plan, stream);
  }
};

}  // namespace cookbook::sgemm
