// SPDX-License-Identifier: MIT
// Exercise 5.3: level 4 with the epilogue of level 8. It is right, but slow: a warp's stores to the
// tile of C hit the same banks. Change c_offset, and nothing else, so that the claims hold. There
// are two ways; one of them does not fit into the 32 KB that the level has requested.
#pragma once

#include "chapters/05_tensor_cores/level_4_swizzled.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace exercise_epilogue {

using swizzled::load_fragments;
using swizzled::load_tile;

/// Offset of chunk `chunk` (8 elements) of row `row` in the tile of C (128 x kCols).
template <int kCols>
__device__ __forceinline__ int c_offset(int row, int chunk) {
  return row * kCols + chunk * 8;
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 2) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  T* a_tile = dynamic_shared<T>();               // (kBlockM, kBlockK)
  T* b_tile = a_tile + C::kBlockM * C::kBlockK;  // (kBlockK, kBlockN)

  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(p.m, C::kBlockM),
                                      ceil_div(p.n, C::kBlockN), C::kGroup);
  const int row0 = tile.m * C::kBlockM, col0 = tile.n * C::kBlockN;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int warp_row = warp / C::kWarpsN * C::kWarpM, warp_col = warp % C::kWarpsN * C::kWarpN;

  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  for (int k0 = 0; k0 < p.k; k0 += C::kBlockK) {
    load_tile<C::kBlockM, C::kBlockK, C::kThreads, kVector>(a_tile, p.a, p.lda, p.m, p.k, row0, k0);
    load_tile<C::kBlockK, C::kBlockN, C::kThreads, kVector>(b_tile, p.b, p.ldb, p.k, p.n, k0, col0);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int step = 0; step < C::kBlockK / 16; ++step) {
      std::uint32_t a[C::kMmaM][4], b[C::kMmaN][2];  // (kWarpM, 16) of A, (16, kWarpN) of B
      load_fragments<C>(a, b, a_tile, b_tile, warp_row, warp_col, lane, step);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[i], b[j]);
      }
    }
    __syncthreads();  // all threads have read them
  }

  // All threads have read the tiles at the last barrier of the loop: C (kBlockM, kBlockN) replaces
  // them.
  T* c_tile = dynamic_shared<T>();
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < C::kMmaN; ++j) {
      const int row = warp_row + i * 16 + lane / 4, chunk = warp_col / 8 + j;
      T* top = c_tile + c_offset<C::kBlockN>(row, chunk) + lane % 4 * 2;
      T* bottom = c_tile + c_offset<C::kBlockN>(row + 8, chunk) + lane % 4 * 2;
      store_vector(top, to_pair<T>(acc[i][j][0], acc[i][j][1]));     // [gather]
      store_vector(bottom, to_pair<T>(acc[i][j][2], acc[i][j][3]));  // [gather]
    }
  }
  __syncthreads();  // the tile of C is complete
  constexpr int kChunks = C::kBlockN / 8;
  const int chunk = static_cast<int>(threadIdx.x % kChunks);
#pragma unroll
  for (int i = 0; i < C::kBlockM * kChunks / C::kThreads; ++i) {
    const int row = static_cast<int>(threadIdx.x / kChunks) + i * (C::kThreads / kChunks);
    const T* from = c_tile + c_offset<C::kBlockN>(row, chunk);
    store_chunk<kVector>(p, row0 + row, col0 + chunk * 8, load_vector<Pack<T, 8>>(from));
  }
}

}  // namespace exercise_epilogue

struct ExerciseEpilogue : NnLevel<bf16> {
  static constexpr LevelText text{
      .name = "exercise_epilogue",
      .changed = "level 4, C through shared memory",
      .expect = "whole sectors to global memory, and no bank conflict on the way",
  };

  static Claims claims(const Problem&) {
    return {global_stores("c").coalesced(), shared_stores().on("gather").conflict_free(),
            shared_loads().conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    using C = swizzled::Config<bf16>;
    const auto& p = plan.problem;
    launch(vectors_fit(p, plan.buffers) ? exercise_epilogue::kernel<C, true>
                                        : exercise_epilogue::kernel<C, false>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
           stream, gemm_args(p, plan.buffers));
  }
};

}  // namespace cookbook::gemm
