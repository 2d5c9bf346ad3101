// SPDX-License-Identifier: MIT
// Level 7: swizzled rasterisation: blocks that run at the same time compute tiles of C that need
// the same parts of A and B, so they share them in L2.
#pragma once

#include "chapters/04_double_buffering/level_6_fragment_prefetch.cuh"

namespace cookbook::sgemm {

struct BlockOrderConfig : FragmentPrefetchConfig {
  static constexpr int kGroup = 16;  // group size: rows of tiles traversed together
};

struct TileIndex {
  int row, col;
};

/// The tile of C that block `index` computes. Groups of kGroup tile rows, one after the other;
/// within a group column by column. With kGroup = 2 and 3 tile columns:
///
///     row by row:  0  1  2      grouped:  0  2  4
///                  3  4  5                1  3  5
///                  6  7  8                6  7  8     (a last group of fewer rows)
template <class C>
__host__ __device__ __forceinline__ TileIndex grouped_tile(int index, int m, int n) {
  const int tiles_m = ceil_div(m, C::kM), tiles_n = ceil_div(n, C::kN);
  // [quote block_order]
  const int first_row = index / (C::kGroup * tiles_n) * C::kGroup;
  const int within = index - first_row * tiles_n;
  const int rows = tiles_m - first_row < C::kGroup ? tiles_m - first_row : C::kGroup;
  return {first_row + within % rows, within / rows};
  // [end quote]
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    block_order_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                       const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                       int64_t ldc) {
  using TileA = float[C::kK][C::kPitchA];  // (k, rows of A)
  using TileB = float[C::kK][C::kN];
  TileA* a_tile = reinterpret_cast<TileA*>(dynamic_shared<float>());  // (stage)
  TileB* b_tile = reinterpret_cast<TileB*>(a_tile + C::kStages);
  const TileIndex tile = grouped_tile<C>(static_cast<int>(blockIdx.x), m, n);
  const int tile_row = tile.row * C::kM;
  const int tile_col = tile.col * C::kN;

  constexpr int kStepM = WarpLayout<C>::kStepM, kStepN = WarpLayout<C>::kStepN;
  const WarpLayout<C> at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(a_tile[s], b_tile[s], s * C::kK);
    cp_async_commit();
  }
  float a_fragment[2][C::kThreadM], b_fragment[2][C::kThreadN];  // (k odd or even, rows | columns)
  const auto load_fragments = [&](int s, int p) {
#pragma unroll
    for (int i = 0; i < C::kThreadM; i += 4) {
      load_fragment4(&a_fragment[p % 2][i], &a_tile[s][p][at.row + i / 4 * kStepM]);
    }
#pragma unroll
    for (int j = 0; j < C::kThreadN; j += 4) {
      load_fragment4(&b_fragment[p % 2][j], &b_tile[s][p][at.col + j / 4 * kStepN]);
    }
  };

  int stage = 0, fill = C::kStages - 1;  // the stage being multiplied, the stage to be filled
  cp_async_wait<C::kStages - 2>();       // the first tile has arrived
  __syncthreads();
  load_fragments(stage, 0);
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      // Load the fragments of step p + 1 while step p multiplies. After the last step that is step
      // 0 of the next tile, which must have arrived by then.
      if (p + 1 < C::kK) {
        load_fragments(stage, p + 1);
      } else {
        cp_async_wait<C::kStages - 2>();
        __syncthreads();  // the next tile has arrived, and all threads have read this one
        fill = stage;
        stage = stage + 1 < C::kStages ? stage + 1 : 0;
        load_fragments(stage, 0);
      }
      if (p == 0) {  // the stage read before the last barrier is free
        copy(a_tile[fill], b_tile[fill], k0 + (C::kStages - 1) * C::kK);
        cp_async_commit();
      }
      add_outer_product(acc, a_fragment[p % 2], b_fragment[p % 2]);
    }
    timeline::end(timeline::Kind::multiply);
  }

#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i) {
    const int row = tile_row + at.row + i / 4 * kStepM + i % 4;
#pragma unroll
    for (int j = 0; j < C::kThreadN; j += 4) {
      const int col = tile_col + at.col + j / 4 * kStepN;
      if (row < m) {
        store_row4<kAligned>(c + row * ldc, col, n,
                             make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
      }
    }
  }
}

struct BlockOrder : Level {
  static constexpr LevelText text{
      .name = "block_order",
      .changed =
          "blocks that run together compute a compact patch of C: groups of 16 tile rows, column "
          "by column",
      .expect =
          "less traffic between L2 and memory, which hardly matters to an fp32 GEMM: the same, a "
          "little at 8192",
      .cost = "two divisions per block",
  };

  static Support supports(const Problem&, const DeviceInfo& device) {
    return enough_shared_memory<BlockOrderConfig>(device);
  }

  static Claims claims(const Problem&) {
    Claims claims = copy_claims();
    claims.push_back(shared_loads().wavefronts_per_request(2));
    claims.push_back(at_least_previous(
        0.96, "FP32 needs too few bytes for the order to matter; tensor cores will need it"));
    claims.push_back(against_library("cuBLAS", 0.90));
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    using C = BlockOrderConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    launch(in_16_byte_pieces(p, at) ? block_order_kernel<C, true> : block_order_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads), stages_bytes<C>()}, stream, p.m, p.n, p.k, at.a,
           p.lda, at.b, p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
