// SPDX-License-Identifier: MIT
// Level 5: 16 x 8 elements of C per thread: 24 words from shared memory serve 128 FMAs.
#pragma once

#include "chapters/04_double_buffering/level_4_warp_tile.cuh"

namespace cookbook::sgemm {

struct WideTileConfig {
  static constexpr int kM = 128, kN = 256, kK = 8;   // tile of C per block, and steps of k per tile
  static constexpr int kWarpM = 64, kWarpN = 64;     // tile of C per warp
  static constexpr int kThreadM = 16, kThreadN = 8;  // elements of C per thread
  static constexpr int kThreads = kM * kN / (kThreadM * kThreadN);
  static constexpr int kBlocks = 1;  // per SM: 255 registers for each of 256 threads
  static constexpr int kStages = 4;
  static constexpr int kPitchA = kM + 4;  // leading dimension of a stage of A
};

/// Dynamic shared memory for all stages of A and B: more than the 48 KB that static arrays may
/// have.
template <class C>
constexpr int stages_bytes() {
  return C::kStages * C::kK * (C::kPitchA + C::kN) * static_cast<int>(sizeof(float));
}

/// Whether the device supports that much per block.
template <class C>
Support enough_shared_memory(const DeviceInfo& device) {
  if (device.smem_per_block_bytes >= static_cast<std::size_t>(stages_bytes<C>())) {
    return Support::yes();
  }
  return Support::no("needs " + std::to_string(stages_bytes<C>()) +
                     " bytes of shared memory per block");
}

/// acc += a b^T, row by row, every other row backwards. Each FMA then shares an operand with the
/// previous one, also where the row changes. The shared operand comes from the register reuse
/// cache, and the two others are rarely in the same register bank. (`+=` is fused as well, but then
/// nvcc 13.0 assigns other registers, and level 8 is slower.)
template <int kRows, int kCols>
__device__ __forceinline__ void add_outer_product(float (&acc)[kRows][kCols],
                                                  const float (&a)[kRows],
                                                  const float (&b)[kCols]) {
#pragma unroll
  // [quote wide_tile]
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int s = 0; s < kCols; ++s) {
      const int j = i % 2 == 0 ? s : kCols - 1 - s;
      acc[i][j] = __fmaf_rn(a[i], b[j], acc[i][j]);
    }
  }
  // [end quote]
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    wide_tile_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                     const float* __restrict__ b, int64_t ldb, float* __restrict__ c, int64_t ldc) {
  using TileA = float[C::kK][C::kPitchA];  // (k, rows of A)
  using TileB = float[C::kK][C::kN];
  TileA* a_tile = reinterpret_cast<TileA*>(dynamic_shared<float>());  // (stage)
  TileB* b_tile = reinterpret_cast<TileB*>(a_tile + C::kStages);
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
      add_outer_product(acc, a_fragment, b_fragment);
    }
    timeline::end(timeline::Kind::multiply);
    fill = stage;  // free after the next barrier
    stage = stage + 1 < C::kStages ? stage + 1 : 0;
  }
  store_groups<kStepM, kStepN, kAligned>(acc, c, ldc, tile_row + at.row, tile_col + at.col, m, n);
}

struct WideTile : Level {
  static constexpr LevelText text{
      .name = "wide_tile",
      .changed = "16 x 8 elements of C per thread; the block computes 128 x 256",
      .expect =
          "6 loads per 128 FMAs instead of 8: FMAs take 95.5 % of the issue slots, shared memory "
          "idles 60 % of the time",
      .cost =
          "128 accumulators: one block of 8 warps per SM, so each warp must hide its own latency",
  };

  static Support supports(const Problem&, const DeviceInfo& device) {
    return enough_shared_memory<WideTileConfig>(device);
  }

  static Claims claims(const Problem&) {
    Claims claims = copy_claims();
    claims.push_back(shared_loads().wavefronts_per_request(2));
    claims.push_back(faster_than_previous(1.0));
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    using C = WideTileConfig;
    const Problem& p = plan.problem;
    const Buffers& at = plan.buffers;
    launch(in_16_byte_pieces(p, at) ? wide_tile_kernel<C, true> : wide_tile_kernel<C, false>,
           {grid_of_tiles<C>(p), dim3(C::kThreads), stages_bytes<C>()}, stream, p.m, p.n, p.k, at.a,
           p.lda, at.b, p.ldb, at.c, p.ldc);
  }
};

}  // namespace cookbook::sgemm
