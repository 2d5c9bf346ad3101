// SPDX-License-Identifier: MIT
// Level 4: each thread computes 8 x 8 elements of C: 16 words from shared memory serve 64 FMAs.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct Register2dConfig {
  static constexpr int kM = 128, kN = 128, kK = 8;  // tile of C per block, and steps of k per tile
  static constexpr int kThreadM = 8, kThreadN = 8;  // elements of C per thread
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = 2;  // per SM: caps a thread at 128 registers
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    register_2d_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                       const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                       int64_t ldc) {
  __shared__ float a_tile[C::kM][C::kK];
  __shared__ float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  // This thread computes rows ty, ty + kStepM ... and columns tx, tx + kStepN ...: neighbouring
  // lanes read neighbouring words of b_tile and write neighbouring words of C.
  constexpr int kStepM = C::kM / C::kThreadM, kStepN = C::kN / C::kThreadN;
  const int ty = tid / kStepN, tx = tid % kStepN;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  for (int k0 = 0; k0 < k; k0 += C::kK) {
    // Global to shared: the tile is distributed over all threads in row-major order.
#pragma unroll
    for (int e = tid; e < C::kM * C::kK; e += C::kThreads) {
      const int a_row = e / C::kK, a_col = e % C::kK;
      const bool inside = tile_row + a_row < m && k0 + a_col < k;
      a_tile[a_row][a_col] = inside ? a[(tile_row + a_row) * lda + k0 + a_col] : 0.0f;  // [copy]
    }
#pragma unroll
    for (int e = tid; e < C::kK * C::kN; e += C::kThreads) {
      const int b_row = e / C::kN, b_col = e % C::kN;
      const bool inside = k0 + b_row < k && tile_col + b_col < n;
      b_tile[b_row][b_col] = inside ? b[(k0 + b_row) * ldb + tile_col + b_col] : 0.0f;  // [copy]
    }
    __syncthreads();

#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      // [quote register_2d]
      for (int i = 0; i < C::kThreadM; ++i) a_fragment[i] = a_tile[ty + i * kStepM][p];
#pragma unroll
      for (int j = 0; j < C::kThreadN; ++j) b_fragment[j] = b_tile[p][tx + j * kStepN];
        // An outer product: every word is used kThreadN or kThreadM times from a register.
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
      // [end quote]
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i) {
    const int row = tile_row + ty + i * kStepM;
#pragma unroll
    for (int j = 0; j < C::kThreadN; ++j) {
      const int col = tile_col + tx + j * kStepN;
      if (row < m && col < n) c[row * ldc + col] = acc[i][j];
    }
  }
}

struct Register2d : Level {
  static constexpr LevelText text{
      .name = "register_2d",
      .changed = "8 x 8 elements of C per thread: an outer product per step of k",
      .expect =
          "16 shared words for 64 FMAs instead of 9 for 8: shared memory is no longer the limit, "
          "instructions are",
      .cost = "64 accumulators and 16 fragments: over 100 registers per thread",
  };

  static Claims claims(const Problem& p) {
    using C = Register2dConfig;
    return {global_loads("a").bytes(a_bytes<C>(p)),
            global_loads().coalesced(),
            global_stores("c").coalesced(),
            shared_loads().conflict_free(),
            shared_loads().bytes(4.0 * static_cast<double>(p.m * p.n * p.k) *
                                 (C::kThreadM + C::kThreadN) / (C::kThreadM * C::kThreadN)),
            faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = Register2dConfig;
    launch_tiles<C>(register_2d_kernel<C>, dim3(C::kThreads), plan, stream);
  }
};

}  // namespace cookbook::sgemm
