// SPDX-License-Identifier: MIT
// Level 3: four stages. Copies may take as long as the FMAs of three tiles, and one barrier per
// tile is enough.
#pragma once

#include "chapters/04_double_buffering/level_2_async_copy.cuh"

namespace cookbook::sgemm {

/// All stages, in shared memory.
template <class C>
struct Stages {
  float (*a)[C::kK][C::kPitchA];  // (stage, k, rows of A)
  float (*b)[C::kK][C::kN];       // (stage, k, columns of B)
};

struct MultistageConfig : AsyncCopyConfig {
  static constexpr int kStages = 4;

  /// In static shared memory; level 5 needs more than that.
  template <class C>
  static __device__ __forceinline__ Stages<C> stages() {
    __shared__ __align__(16) float a_tile[C::kStages][C::kK][C::kPitchA];
    __shared__ __align__(16) float b_tile[C::kStages][C::kK][C::kN];
    return {a_tile, b_tile};
  }

  /// Waits until the next tile may be read, and starts to copy the tile of the steps from k0 on
  /// into the stage that is free then. The exercises have others.
  template <class C, class Copy, class StageA, class StageB>
  static __device__ __forceinline__ void next_tile(Copy& copy, StageA& a_free, StageB& b_free,
                                                   int k0) {
    // [quote multistage]
    cp_async_wait<C::kStages - 2>();  // this thread's pieces of this tile have arrived
    // One barrier, two meanings: all threads' pieces have arrived, and all threads have read the
    // previous tile, whose stage is filled next.
    __syncthreads();
    copy(a_free, b_free, k0);
    cp_async_commit();
    // [end quote]
  }

  /// acc += a b^T. Level 5 has another order.
  template <int kRows, int kCols>
  static __device__ __forceinline__ void add_outer_product(float (&acc)[kRows][kCols],
                                                           const float (&a)[kRows],
                                                           const float (&b)[kCols]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) acc[i][j] += a[i] * b[j];
    }
  }
};

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    multistage_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                      const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                      int64_t ldc) {
  const auto [a_tile, b_tile] = C::template stages<C>();
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  using Layout = typename C::template Layout<C>;
  const Layout at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(a_tile[s], b_tile[s], s * C::kK);
    cp_async_commit();
  }
  int stage = 0, fill = C::kStages - 1;  // the stage being multiplied, the stage to be filled
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    C::template next_tile<C>(copy, a_tile[fill], b_tile[fill], k0 + (C::kStages - 1) * C::kK);

    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[stage][p][at.row_of(i)]);
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[stage][p][at.col_of(j)]);
      }
      C::add_outer_product(acc, a_fragment, b_fragment);
    }
    timeline::end(timeline::Kind::multiply);
    fill = stage;  // free after the next barrier
    stage = stage + 1 < C::kStages ? stage + 1 : 0;
  }
  store_groups<Layout::kStepM, Layout::kStepN, kAligned>(acc, c, ldc, tile_row + at.row_of(0),
                                                         tile_col + at.col_of(0), m, n);
}

/// A level that launches this kernel.
template <class C>
struct MultistageLevel : Level {
  static void run(const Plan& plan, Stream stream) {
    launch_tiles<C>(multistage_kernel<C, true>, multistage_kernel<C, false>, plan, stream);
  }
};

struct Multistage : MultistageLevel<MultistageConfig> {
  static constexpr LevelText text{
      .name = "multistage",
      .changed = "four stages instead of two, and one barrier per tile instead of two",
      .expect = "there is no wait for memory left to hide; half of the barriers go: a few per cent",
      .cost = "twice the shared memory of two stages",
  };

  static Claims claims(const Problem& p) {
    return copy_claims({shared_loads().conflict_free(), fragment_loads<MultistageConfig>(p),
                        at_least_previous(0.98, "there is no wait for memory left to hide")});
  }
};

}  // namespace cookbook::sgemm
