// SPDX-License-Identifier: MIT
// Level 1: double buffering as in textbooks. While the block multiplies tile t, it loads tile t + 1
// from global memory into registers. Two buffers in shared memory save a barrier.
#pragma once

#include "chapters/02_tiling/level_5_vectorised.cuh"
#include "common/device/timeline.cuh"

namespace cookbook::sgemm {

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    register_prefetch_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                             const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                             int64_t ldc) {
  static_assert(C::kM * C::kK == 4 * C::kThreads && C::kK * C::kN == 4 * C::kThreads,
                "a float4 each");
  __shared__ __align__(16) float a_tile[2][C::kK][C::kM + 4];  // (buffer, k, rows of A)
  __shared__ __align__(16) float b_tile[2][C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  constexpr int kStepM = C::kM / 2, kStepN = C::kN / 2;
  const int ty = tid / (C::kN / C::kThreadN), tx = tid % (C::kN / C::kThreadN);
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  // This thread copies four neighbouring floats of A and of B per tile.
  const int a_row = tid / (C::kK / 4), a_col = tid % (C::kK / 4) * 4;
  const int b_row = tid / (C::kN / 4), b_col = tid % (C::kN / 4) * 4;
  const float* a_from = a + (tile_row + a_row) * lda;
  const int a_cols = tile_row + a_row < m ? k : 0;  // a row outside A has no columns
  float4 a_piece, b_piece;                          // in flight from global to shared memory

  const auto fetch = [&](int k0) {  // starts the loads without waiting for them
    timeline::begin(timeline::Kind::copy);
    a_piece = load_row4<kAligned>(a_from, k0 + a_col, a_cols);
    b_piece = load_row4<kAligned>(b + (k0 + b_row) * ldb, tile_col + b_col, k0 + b_row < k ? n : 0);
  };
  const auto put = [&](int buffer) {  // waits for the loads, then writes shared memory
    a_tile[buffer][a_col + 0][a_row] = a_piece.x;
    a_tile[buffer][a_col + 1][a_row] = a_piece.y;
    a_tile[buffer][a_col + 2][a_row] = a_piece.z;
    a_tile[buffer][a_col + 3][a_row] = a_piece.w;
    *reinterpret_cast<float4*>(&b_tile[buffer][b_row][b_col]) = b_piece;
    timeline::end(timeline::Kind::copy);
  };

  int buffer = 0;
  fetch(0);
  put(buffer);
  __syncthreads();
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    // [quote register_prefetch]
    const bool more = k0 + C::kK < k;
    if (more) fetch(k0 + C::kK);
    // [end quote]

    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[buffer][p][i / 4 * kStepM + 4 * ty]);
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[buffer][p][j / 4 * kStepN + 4 * tx]);
      }
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
    }
    timeline::end(timeline::Kind::multiply);

    // [quote put]
    // All threads read the other buffer before the previous barrier, so it may be written without
    // one.
    if (more) put(buffer ^ 1);
    __syncthreads();
    buffer ^= 1;
    // [end quote]
  }
  store_groups<kStepM, kStepN, kAligned>(acc, c, ldc, tile_row + 4 * ty, tile_col + 4 * tx, m, n);
}

struct RegisterPrefetchConfig : VectorisedConfig {
  static constexpr int kBlocks = 1;  // per SM: without a limit the compiler uses 145 registers
};

struct RegisterPrefetch : Level {
  static constexpr LevelText text{
      .name = "register_prefetch",
      .changed =
          "the next tile is loaded into registers during this one's FMAs; two shared buffers",
      .expect =
          "one block hides its own latency, but two blocks no longer fit on an SM: about the same, "
          "often a loss",
      .cost = "8 registers and predicates live during the FMAs, twice the shared memory",
  };

  static Claims claims(const Problem&) {
    return {global_loads().coalesced(),
            global_loads().sectors_per_request(16),
            global_stores("c").sectors_per_request(16),
            shared_stores().conflict_free(),
            shared_loads().conflict_free(),
            at_least_previous(0.7, "it trades a second resident block for its own prefetch")};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = RegisterPrefetchConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    const bool aligned = rows_are_16_byte_aligned(at.a, p.lda) &&
                         rows_are_16_byte_aligned(at.b, p.ldb) &&
                         rows_are_16_byte_aligned(at.c, p.ldc);
    launch(aligned ? register_prefetch_kernel<C, true> : register_prefetch_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads)}, stream, p.m, p.n, p.k, at.a, p.lda, at.b,
           p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
