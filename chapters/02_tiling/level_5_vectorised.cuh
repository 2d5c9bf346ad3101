// SPDX-License-Identifier: MIT
// Level 5: every access moves four floats. A is transposed on its way into shared memory, so that a
// thread's four rows of one k are contiguous.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct VectorisedConfig {
  static constexpr int kM = 128, kN = 128, kK = 8;  // tile of C per block, and steps of k per tile
  static constexpr int kThreadM = 8, kThreadN = 8;  // elements of C per thread
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = 2;   // per SM: caps a thread at 128 registers
  static constexpr int kUnroll = kK;  // steps of k that the compiler unrolls
};

/// row[col .. col + 3], zero-filled from column `cols` on. kAligned: rows start at 16-byte
/// addresses and col is a multiple of 4, so four elements are one access.
template <bool kAligned>
__device__ __forceinline__ float4 load_row4(const float* row, int col, int cols) {
  if (kAligned && col + 3 < cols) return *reinterpret_cast<const float4*>(row + col);
  float4 v = make_float4(0, 0, 0, 0);
  if (col + 0 < cols) v.x = row[col + 0];
  if (col + 1 < cols) v.y = row[col + 1];
  if (col + 2 < cols) v.z = row[col + 2];
  if (col + 3 < cols) v.w = row[col + 3];
  return v;
}

/// row[col .. col + 3] = v, except columns from `cols` on.
template <bool kAligned>
__device__ __forceinline__ void store_row4(float* row, int col, int cols, const float4& v) {
  if (kAligned && col + 3 < cols) {
    *reinterpret_cast<float4*>(row + col) = v;
    return;
  }
  if (col + 0 < cols) row[col + 0] = v.x;
  if (col + 1 < cols) row[col + 1] = v.y;
  if (col + 2 < cols) row[col + 2] = v.z;
  if (col + 3 < cols) row[col + 3] = v.w;
}

/// Loads four neighbouring words of shared memory into fragment[0..3] with one 16-byte access.
__device__ __forceinline__ void load_fragment4(float* fragment, const float* shared) {
  const float4 v = *reinterpret_cast<const float4*>(shared);
  fragment[0] = v.x, fragment[1] = v.y, fragment[2] = v.z, fragment[3] = v.w;
}

/// Stores a thread's groups of 4 x 4 elements of C. The first begins at (row0, col0), the next ones
/// kStepM rows and kStepN columns further on.
template <int kStepM, int kStepN, bool kAligned, int kRows, int kCols>
__device__ __forceinline__ void store_groups(const float (&acc)[kRows][kCols], float* c,
                                             int64_t ldc, int row0, int col0, int m, int n) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = row0 + i / 4 * kStepM + i % 4;
#pragma unroll
    for (int j = 0; j < kCols; j += 4) {
      const int col = col0 + j / 4 * kStepN;
      if (row < m) {
        store_row4<kAligned>(c + row * ldc, col, n,
                             make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
      }
    }
  }
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    vectorised_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                      const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                      int64_t ldc) {
  static_assert(C::kM * C::kK == 4 * C::kThreads && C::kK * C::kN == 4 * C::kThreads,
                "a float4 each");
  // Four floats of padding per row: without them the transposing stores of two lanes hit the same
  // bank.
  __shared__ __align__(16) float a_tile[C::kK][C::kM + 4];  // transposed: (k, rows of A)
  __shared__ __align__(16) float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;
  const int tid = static_cast<int>(threadIdx.x);

  // This thread computes 2 x 2 groups of 4 x 4 elements of C: rows 4 ty .. 4 ty + 3 of each half of
  // the tile, columns 4 tx .. 4 tx + 3 of each half. A group of four is one access. The groups are
  // half a tile apart, so that neighbouring lanes access neighbouring banks.
  constexpr int kStepM = C::kM / 2, kStepN = C::kN / 2;
  const int ty = tid / (C::kN / C::kThreadN), tx = tid % (C::kN / C::kThreadN);
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  // This thread copies four neighbouring floats of A and of B per tile.
  const int a_row = tid / (C::kK / 4), a_col = tid % (C::kK / 4) * 4;
  const int b_row = tid / (C::kN / 4), b_col = tid % (C::kN / 4) * 4;
  const float* a_from = a + (tile_row + a_row) * lda;
  const int a_cols = tile_row + a_row < m ? k : 0;  // a row outside A has no columns

  for (int k0 = 0; k0 < k; k0 += C::kK) {
    const float4 a_piece = load_row4<kAligned>(a_from, k0 + a_col, a_cols);
    const float4 b_piece =
        load_row4<kAligned>(b + (k0 + b_row) * ldb, tile_col + b_col, k0 + b_row < k ? n : 0);
    // [quote vectorised]
    a_tile[a_col + 0][a_row] = a_piece.x;  // [transpose]
    a_tile[a_col + 1][a_row] = a_piece.y;  // [transpose]
    a_tile[a_col + 2][a_row] = a_piece.z;  // [transpose]
    a_tile[a_col + 3][a_row] = a_piece.w;  // [transpose]
    // [end quote]
    *reinterpret_cast<float4*>(&b_tile[b_row][b_col]) = b_piece;
    __syncthreads();

#pragma unroll C::kUnroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      // [quote fragments]
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[p][i / 4 * kStepM + 4 * ty]);  // [a_fragment]
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[p][j / 4 * kStepN + 4 * tx]);  // [b_fragment]
      }
      // [end quote]
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
    }
    __syncthreads();
  }
  store_groups<kStepM, kStepN, kAligned>(acc, c, ldc, tile_row + 4 * ty, tile_col + 4 * tx, m, n);
}

struct Vectorised : Level {
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "16-byte global and shared accesses; A is transposed into shared memory",
      .expect =
          "4 load instructions per 64 FMAs instead of 16: FMAs take 94 % of the inner loop's issue "
          "slots",
      .cost = "transposing stores, and padding against their bank conflicts",
  };

  static Claims claims(const Problem& p) {
    using C = VectorisedConfig;
    return {
        global_loads().coalesced(),
        global_stores("c").coalesced(),
        global_loads("a").sectors_per_request(16),  // 32 lanes of 16 bytes
        global_loads("b").sectors_per_request(16),
        global_stores("c").sectors_per_request(16),
        shared_stores().conflict_free(),
        shared_loads().conflict_free(),
        shared_loads().requests(static_cast<double>(p.m * p.n * p.k) * (C::kThreadM + C::kThreadN) /
                                4 / (C::kThreadM * C::kThreadN) / 32),
        faster_than_previous(1.1),
        against_library("cuBLAS", 0.62)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = VectorisedConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    const bool aligned = rows_are_16_byte_aligned(at.a, p.lda) &&
                         rows_are_16_byte_aligned(at.b, p.ldb) &&
                         rows_are_16_byte_aligned(at.c, p.ldc);
    launch(aligned ? vectorised_kernel<C, true> : vectorised_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads)}, stream, p.m, p.n, p.k, at.a, p.lda, at.b,
           p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
