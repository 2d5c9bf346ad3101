// SPDX-License-Identifier: MIT
// Level 4: each warp computes a compact tile of C, and its lanes are numbered so that loading
// either fragment takes the fewest wavefronts.
#pragma once

#include "chapters/04_double_buffering/level_3_multistage.cuh"
#include "common/device/warp.cuh"

namespace cookbook::sgemm {

struct WarpTileConfig : MultistageConfig {
  static constexpr int kWarpM = 32, kWarpN = 64;  // tile of C per warp
};

/// The position of a thread's elements of C in the tile of its block.
///
/// A warp computes kWarpM x kWarpN elements with its lanes as 4 rows x 8 columns. A lane computes
/// groups of four rows with a stride of kStepM, times groups of four columns with a stride of
/// kStepN. Its first group starts at (row, col). Lanes are numbered in pairs down a column:
///
///      lane:    0  2  4  6  8 10 12 14      read A: 4 different pieces of 16 bytes
///               1  3  5  7  9 11 13 15      read B: 8 different pieces of 16 bytes
///              16 18 20 22 24 26 28 30
///              17 19 21 23 25 27 29 31
///
/// A 16-byte access is served one quarter-warp at a time. Two quarters are served together if lanes
/// 1 apart or lanes 2 apart read the same address. For B lanes 2i and 2i + 1 do, for A lanes i and
/// i + 2: two wavefronts each. Numbered row by row, lanes 1 and 2 apart would differ for B: four
/// wavefronts.
template <class C>
struct WarpLayout {
  static constexpr int kStepM = C::kWarpM * 4 / C::kThreadM, kStepN = C::kWarpN * 4 / C::kThreadN;
  static_assert(kStepM == 4 * 4 && kStepN == 8 * 4, "4 x 8 lanes of 4 x 4 elements");
  static_assert(C::kM % C::kWarpM == 0 && C::kN % C::kWarpN == 0);
  static_assert(C::kM / C::kWarpM * (C::kN / C::kWarpN) * 32 == C::kThreads, "one tile per warp");
  int row, col;

  __device__ __forceinline__ WarpLayout() {
    constexpr int kWarpsN = C::kN / C::kWarpN;
    const int lane = lane_idx(), warp = warp_idx();
    // [quote warp_tile]
    row = warp / kWarpsN * C::kWarpM + 4 * (lane / 16 * 2 + lane % 2);
    col = warp % kWarpsN * C::kWarpN + 4 * (lane % 16 / 2);
    // [end quote]
  }
};

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    warp_tile_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                     const float* __restrict__ b, int64_t ldb, float* __restrict__ c, int64_t ldc) {
  __shared__ __align__(16) float a_tile[C::kStages][C::kK][C::kPitchA];  // (stage, k, rows of A)
  __shared__ __align__(16) float b_tile[C::kStages][C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  constexpr int kStepM = WarpLayout<C>::kStepM, kStepN = WarpLayout<C>::kStepN;
  const WarpLayout<C> at;
  float acc[C::kThreadM][C::kThreadN] = {};  // (rows, columns)

  TileCopy<C, kAligned> copy(tile_row, tile_col, m, n, k, a, lda, b, ldb);
  // Start filling all stages but one; tiles past the end of k are zero-filled.
  for (int s = 0; s < C::kStages - 1; ++s) {
    copy(a_tile[s], b_tile[s], s * C::kK);
    cp_async_commit();
  }
  int stage = 0, fill = C::kStages - 1;  // the stage being multiplied, the stage to be filled
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    cp_async_wait<C::kStages - 2>();  // this thread's pieces of this tile have arrived
    // One barrier, two meanings: all threads' pieces have arrived, and all threads have read the
    // previous tile, whose stage is filled next.
    __syncthreads();
    copy(a_tile[fill], b_tile[fill], k0 + (C::kStages - 1) * C::kK);
    cp_async_commit();

    timeline::begin(timeline::Kind::multiply);
#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      float a_fragment[C::kThreadM], b_fragment[C::kThreadN];
#pragma unroll
      for (int i = 0; i < C::kThreadM; i += 4) {
        load_fragment4(&a_fragment[i], &a_tile[stage][p][at.row + i / 4 * kStepM]);
      }
#pragma unroll
      for (int j = 0; j < C::kThreadN; j += 4) {
        load_fragment4(&b_fragment[j], &b_tile[stage][p][at.col + j / 4 * kStepN]);
      }
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kThreadN; ++j) acc[i][j] += a_fragment[i] * b_fragment[j];
      }
    }
    timeline::end(timeline::Kind::multiply);
    fill = stage;  // free after the next barrier
    stage = stage + 1 < C::kStages ? stage + 1 : 0;
  }
  store_groups<kStepM, kStepN, kAligned>(acc, c, ldc, tile_row + at.row, tile_col + at.col, m, n);
}

struct WarpTile : Level {
  static constexpr LevelText text{
      .name = "warp_tile",
      .changed =
          "a warp computes 32 x 64 of C instead of 16 x 128 in four strips; lanes numbered in "
          "pairs",
      .expect =
          "12 wavefronts per step of k become 8: shared memory is busy half of the time instead of "
          "three quarters",
      .cost = "only a less obvious numbering: the same registers and shared memory",
  };

  static Claims claims(const Problem&) {
    Claims claims = copy_claims();
    claims.push_back(shared_loads().wavefronts_per_request(2));
    claims.push_back(at_least_previous(
        0.97, "shared memory was not what the level below waited for; level 5 needs the layout"));
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    using C = WarpTileConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    launch(in_16_byte_pieces(p, at) ? warp_tile_kernel<C, true> : warp_tile_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads)}, stream, p.m, p.n, p.k, at.a, p.lda, at.b,
           p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
