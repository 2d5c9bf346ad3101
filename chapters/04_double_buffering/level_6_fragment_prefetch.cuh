// SPDX-License-Identifier: MIT
// Level 6: double buffering again, now from shared memory to registers: the next step's fragments
// are loaded while this step's FMAs run.
#pragma once

#include "chapters/04_double_buffering/level_5_wide_tile.cuh"

namespace cookbook::sgemm {

struct TileIndex {
  int row, col;
};

struct FragmentPrefetchConfig : WideTileConfig {
  /// The tile of C that block `index` computes: row by row.
  template <class C>
  static __device__ __forceinline__ TileIndex tile(int index, int /*m*/, int n) {
    const int tiles_n = ceil_div(n, C::kN);
    return {index / tiles_n, index % tiles_n};
  }
  /// Stores a thread's elements of C, the first of them at (row, col).
  template <class C, bool kAligned>
  static __device__ __forceinline__ void store(const float (&acc)[C::kThreadM][C::kThreadN],
                                               float* c, int64_t ldc, int row, int col, int m,
                                               int n) {
    store_groups<WarpLayout<C>::kStepM, WarpLayout<C>::kStepN, kAligned>(acc, c, ldc, row, col, m,
                                                                         n);
  }
};

/// `alpha`: what else C::store takes; nothing before level 8.
template <class C, bool kAligned, class... Alpha>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    fragment_prefetch_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                             const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                             int64_t ldc, Alpha... alpha) {
  const Stages<C> stages = C::template stages<C>();
  const TileIndex tile = C::template tile<C>(static_cast<int>(blockIdx.x), m, n);
  const int tile_row = tile.row * C::kM;
  const int tile_col = tile.col * C::kN;

  constexpr int kStepM = WarpLayout<C>::kStepM, kStepN = WarpLayout<C>::kStepN;
  const WarpLayout<C> at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(stages.a[s], stages.b[s], s * C::kK);
    cp_async_commit();
  }
  float a_fragment[2][C::kThreadM], b_fragment[2][C::kThreadN];  // (k odd or even, rows | columns)
  const auto load_fragments = [&](int s, int p) {
#pragma unroll
    for (int i = 0; i < C::kThreadM; i += 4) {
      load_fragment4(&a_fragment[p % 2][i], &stages.a[s][p][at.row + i / 4 * kStepM]);
    }
#pragma unroll
    for (int j = 0; j < C::kThreadN; j += 4) {
      load_fragment4(&b_fragment[p % 2][j], &stages.b[s][p][at.col + j / 4 * kStepN]);
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
      // [quote fragment_prefetch]
      if (p + 1 < C::kK) {
        load_fragments(stage, p + 1);
      } else {
        cp_async_wait<C::kStages - 2>();
        __syncthreads();  // the next tile has arrived, and all threads have read this one
        fill = stage;
        stage = stage + 1 < C::kStages ? stage + 1 : 0;
        load_fragments(stage, 0);
      }
      // [end quote]
      if (p == 0) {  // the stage read before the last barrier is free
        copy(stages.a[fill], stages.b[fill], k0 + (C::kStages - 1) * C::kK);
        cp_async_commit();
      }
      C::add_outer_product(acc, a_fragment[p % 2], b_fragment[p % 2]);
    }
    timeline::end(timeline::Kind::multiply);
  }
  C::template store<C, kAligned>(acc, c, ldc, tile_row + at.row, tile_col + at.col, m, n, alpha...);
}

/// A level that launches this kernel.
template <class C>
struct FragmentPrefetchLevel : DynamicStagesLevel<C> {
  static void run(const Level::Plan& plan, Stream stream) {
    launch_tiles<C>(fragment_prefetch_kernel<C, true>, fragment_prefetch_kernel<C, false>, plan,
                    stream, stages_bytes<C>());
  }
};

struct FragmentPrefetch : FragmentPrefetchLevel<FragmentPrefetchConfig> {
  static constexpr LevelText text{
      .name = "fragment_prefetch",
      .changed = "fragments are double-buffered in registers, also across tiles",
      .expect =
          "shared-memory latency leaves the critical path, especially after each barrier: a few "
          "per cent",
      .cost = "24 more registers per thread",
  };

  static Claims claims(const Problem&) {
    return copy_claims(
        {shared_loads().wavefronts_per_request(2),
         at_least_previous(0.98,
                           "the second warp of a scheduler hides most of that wait already")});
  }
};

}  // namespace cookbook::sgemm
