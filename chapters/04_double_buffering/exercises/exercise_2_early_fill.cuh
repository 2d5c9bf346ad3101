// SPDX-License-Identifier: MIT
// Exercise 4.2, a kernel with a planted bug: level 3, but "the earlier a copy starts, the better".
//
// With COOKBOOK_SIMT_ASYNC=late every size passes; with early, most fail. The race detector names
// two lines. Which thread's read races with which copy? Repair it without a second barrier (the
// grader does not check this). Mind the wait: it counts groups, and moving a commit changes the
// count.
#pragma once

#include "chapters/04_double_buffering/level_2_async_copy.cuh"

namespace cookbook::sgemm {

struct EarlyFillConfig : AsyncCopyConfig {
  static constexpr int kStages = 4;
};

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    early_fill_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                      const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                      int64_t ldc) {
  __shared__ __align__(16) float a_tile[C::kStages][C::kK][C::kPitchA];  // (stage, k, rows of A)
  __shared__ __align__(16) float b_tile[C::kStages][C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  constexpr int kStepM = C::kM / 2, kStepN = C::kN / 2;
  const int ty = tid / (C::kN / C::kThreadN), tx = tid % (C::kN / C::kThreadN);
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(a_tile[s], b_tile[s], s * C::kK);
    cp_async_commit();
  }
  int stage = 0, fill = C::kStages - 1;  // the stage being multiplied, the stage to be filled
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    copy(a_tile[fill], b_tile[fill], k0 + (C::kStages - 1) * C::kK);
    cp_async_commit();
    cp_async_wait<C::kStages - 1>();  // this thread's pieces of this tile have arrived
    __syncthreads();                  // all threads' pieces have arrived

#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[stage][p][i / 4 * kStepM + 4 * ty]);
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[stage][p][j / 4 * kStepN + 4 * tx]);
      }
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
    }
    fill = stage;
    stage = stage + 1 < C::kStages ? stage + 1 : 0;
  }
  store_groups<kStepM, kStepN, kAligned>(acc, c, ldc, tile_row + 4 * ty, tile_col + 4 * tx, m, n);
}

struct EarlyFill : Level {
  static constexpr LevelText text{
      .name = "early_fill",
      .changed = "the next copies start before the barrier, to give them more time; has a bug",
      .expect = "right under all three schedules of the SIMT backend, once repaired",
      .cost = "as much shared memory as multistage",
  };

  static Claims claims(const Problem&) {
    Claims claims = copy_claims();
    claims.push_back(shared_loads().conflict_free());
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    using C = EarlyFillConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    launch(in_16_byte_pieces(p, at) ? early_fill_kernel<C, true> : early_fill_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads)}, stream, p.m, p.n, p.k, at.a, p.lda, at.b,
           p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
