// SPDX-License-Identifier: MIT
// Level 3: the instructions that WMMA hides: ldmatrix loads fragments, mma.sync multiplies them.
#pragma once

#include "chapters/05_tensor_cores/level_2_wmma_shared.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace mma_ldmatrix {

using wmma_shared::load_tile;

/// A thread's accumulators go to C as they are. Documented layout: it holds two neighbours in row
/// lane / 4, and two more 8 rows below.
struct StorePairs {
  template <class C, bool kVector, class T>
  static __device__ __forceinline__ void store(const float (&acc)[C::kMmaM][C::kMmaN][4],
                                               const GemmArgs<T>& p, const WarpTile& at) {
    const int row = at.row0 + at.row + at.lane / 4, col = at.col0 + at.col + at.lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < C::kMmaN; ++j) {
        store_pair<kVector>(p, row + i * 16, col + j * 8, acc[i][j][0], acc[i][j][1]);
        store_pair<kVector>(p, row + i * 16 + 8, col + j * 8, acc[i][j][2], acc[i][j][3]);
      }
    }
  }
};

template <class T>
struct Config : wmma_shared::Config<T> {
  using Base = wmma_shared::Config<T>;
  static constexpr int kMmaM = Base::kWarpM / 16, kMmaN = Base::kWarpN / 8;  // m16n8k16 per warp
  using Epilogue = StorePairs;

  /// The fragments of k step `step` of a warp's rows of A and columns of B. ldmatrix.x4 moves a
  /// 16x16 piece: lanes 0-15 give its rows' first chunks, lanes 16-31 the second ones. A is already
  /// in the layout of mma.sync. B is stored k by n and needed n by k, so ldmatrix transposes its
  /// 8x8 matrices.
  template <class C>
  static __device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                                        std::uint32_t (&b)[C::kMmaN][2],
                                                        const T* a_tile, const T* b_tile,
                                                        const WarpTile& at, int step) {
    const int row = at.lane % 16, chunk = at.lane / 16;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      const int offset =
          C::template tile_offset<C::kBlockK>(at.row + i * 16 + row, step * 2 + chunk);
      ldmatrix_x4(a[i], a_tile + offset);  // [a]
    }
#pragma unroll
    for (int j = 0; j < C::kMmaN; j += 2) {
      const int offset =
          C::template tile_offset<C::kBlockN>(step * 16 + row, at.col / 8 + j + chunk);
      std::uint32_t pair[4];                     // two neighbouring n8 fragments
      ldmatrix_x4_trans(pair, b_tile + offset);  // [b]
      b[j][0] = pair[0], b[j][1] = pair[1];
      b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
    }
  }
};

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 2) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  T* a_tile = dynamic_shared<T>();               // (kBlockM, kBlockK)
  T* b_tile = a_tile + C::kBlockM * C::kBlockK;  // (kBlockK, kBlockN)

  const WarpTile at = warp_tile<C>(p);
  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  for (int k0 = 0; k0 < p.k; k0 += C::kBlockK) {
    load_tile<C, C::kBlockM, C::kBlockK, kVector>(a_tile, p.a, p.lda, p.m, p.k, at.row0, k0);
    load_tile<C, C::kBlockK, C::kBlockN, kVector>(b_tile, p.b, p.ldb, p.k, p.n, k0, at.col0);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int step = 0; step < C::kBlockK / 16; ++step) {
      std::uint32_t a[C::kMmaM][4], b[C::kMmaN][2];  // (kWarpM, 16) of A, (16, kWarpN) of B
      // [quote mma_ldmatrix]
      C::template load_fragments<C>(a, b, a_tile, b_tile, at, step);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[i], b[j]);
      }
      // [end quote]
    }
    __syncthreads();  // all threads have read them
  }
  C::Epilogue::template store<C, kVector>(acc, p, at);
}

/// A level that launches this kernel.
template <class C>
struct KernelLevel : TileLevel<C> {
  static void run(const typename TileLevel<C>::Plan& plan, Stream stream) {
    const bool vector = vectors_fit(plan.problem, plan.buffers);
    TileLevel<C>::launch_tiles(vector ? kernel<C, true> : kernel<C, false>, plan, stream);
  }
};

}  // namespace mma_ldmatrix

template <class T>
struct MmaLdmatrix : mma_ldmatrix::KernelLevel<mma_ldmatrix::Config<T>> {
  static constexpr LevelText text{
      .name = "mma_ldmatrix",
      .changed = "mma.sync and ldmatrix in place of WMMA",
      .expect =
          "the same conflicts, now countable: an 8x8 matrix has its eight rows in the same four "
          "banks, 8 wavefronts each; C is stored directly from registers",
      .cost = "the code must know which lane holds which element",
  };

  static Claims claims(const ProblemT<T>& p) {
    return {shared_loads().on("a").wavefronts_per_request(32),  // four matrices, 8-way conflicts
            shared_loads().on("b").wavefronts_per_request(32), global_loads().coalesced(),
            global_loads().sectors_per_request(16),
            // A quad writes 16 bytes of a row: half of each 32-byte sector.
            global_stores("c").sectors_over_ideal(2), pair_stores(p)};
  }
};

}  // namespace cookbook::gemm
