// SPDX-License-Identifier: MIT
// Level 7: the fragments of the next k step are loaded between the mma.sync of this one.
#pragma once

#include "chapters/05_tensor_cores/level_6_wide_tiles.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace fragments_ahead {

/// The block starts to copy portion `portion` of kPortions of the kRows x kCols tile at (row0,
/// col0) of a rows x cols matrix.
template <class C, int kRows, int kCols, int kPortions, bool kVector, class T>
__device__ __forceinline__ void load_tile(T* tile, const T* matrix, std::int64_t pitch, int rows,
                                          int cols, int row0, int col0, int portion) {
  constexpr int kChunks = kCols / 8;                   // chunks per row
  constexpr int kRowsPerPass = C::kThreads / kChunks;  // rows that the block copies per pass
  constexpr int kPasses = kRows / kRowsPerPass;
  const int chunk = static_cast<int>(threadIdx.x % kChunks);
  const int first = static_cast<int>(threadIdx.x / kChunks);
  const int rows_left = rows - row0 - first, cols_left = cols - col0 - chunk * 8;
  const T* source = matrix + (row0 + first) * pitch + (col0 + chunk * 8);
#pragma unroll
  for (int i = kPasses * portion / kPortions; i < kPasses * (portion + 1) / kPortions; ++i) {
    T* destination = tile + C::template tile_offset<kCols>(first + i * kRowsPerPass, chunk);
    const int valid = i * kRowsPerPass < rows_left ? cols_left : 0;
    const T* from = source + i * kRowsPerPass * pitch;
    copy_chunk_async<kVector>(destination, from, valid, matrix);
  }
}

/// Piece `i` of the fragments of k step `step` of a warp's rows of A and columns of B: 16 rows of
/// A, 16 columns of B. ldmatrix.x4 moves a 16x16 piece: lanes 0-15 give its rows' first chunks,
/// lanes 16-31 the second ones. A is already in the layout of mma.sync. B is stored k by n
/// and needed n by k, so ldmatrix transposes its 8x8 matrices.
template <class C, class T>
__device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                               std::uint32_t (&b)[C::kMmaN][2], const T* a_tile,
                                               const T* b_tile, const WarpTile& at, int step,
                                               int i) {
  static_assert(C::kMmaN == 2 * C::kMmaM, "as many pieces of B as of A: square warp tiles");
  const int row = at.lane % 16, chunk = at.lane / 16;
  const int a_offset = C::template tile_offset<C::kBlockK>(at.row + i * 16 + row, step * 2 + chunk);
  ldmatrix_x4(a[i], a_tile + a_offset);  // [a]
  const int b_offset =
      C::template tile_offset<C::kBlockN>(step * 16 + row, at.col / 8 + i * 2 + chunk);
  std::uint32_t pair[4];                       // two neighbouring n8 fragments
  ldmatrix_x4_trans(pair, b_tile + b_offset);  // [b]
  b[2 * i][0] = pair[0], b[2 * i][1] = pair[1];
  b[2 * i + 1][0] = pair[2], b[2 * i + 1][1] = pair[3];
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 1) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  constexpr int kSteps = C::kBlockK / 16;
  static_assert(kSteps % 2 == 0, "every tile begins with fragment set 0");
  constexpr int kPortions = (kSteps - 1) * C::kMmaM;  // of a tile's copies, between mma.sync
  constexpr int kATile = C::kBlockM * C::kBlockK, kBTile = C::kBlockK * C::kBlockN;
  T* a_tiles = dynamic_shared<T>();            // (kStages, kBlockM, kBlockK)
  T* b_tiles = a_tiles + C::kStages * kATile;  // (kStages, kBlockK, kBlockN)

  const WarpTile at = warp_tile<C>(p);
  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  const int tiles = ceil_div(p.k, C::kBlockK);
  // Starts the copy of a portion of tile t into stage t % kStages. Past the last tile it
  // copies zeros, which no thread uses: the count of groups stays right without a branch.
  const auto load_stage = [&](int t, int portion) {
    const int stage = t % C::kStages, k0 = t * C::kBlockK;
    load_tile<C, C::kBlockM, C::kBlockK, kPortions, kVector>(a_tiles + stage * kATile, p.a, p.lda,
                                                             p.m, p.k, at.row0, k0, portion);
    load_tile<C, C::kBlockK, C::kBlockN, kPortions, kVector>(b_tiles + stage * kBTile, p.b, p.ldb,
                                                             p.k, p.n, k0, at.col0, portion);
  };
  for (int t = 0; t < C::kStages - 1; ++t) {
#pragma unroll
    for (int portion = 0; portion < kPortions; ++portion) load_stage(t, portion);
    cp_async_commit();
  }
  cp_async_wait<C::kStages - 2>();  // this thread's part of tile 0 has arrived
  __syncthreads();                  // every thread's has

  // Two sets: (kWarpM, 16) of A, (16, kWarpN) of B being multiplied, and the next ones being
  // loaded.
  std::uint32_t a[2][C::kMmaM][4], b[2][C::kMmaN][2];
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    load_fragments<C>(a[0], b[0], a_tiles, b_tiles, at, 0, i);
  }

  for (int t = 0; t < tiles; ++t) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int now = step % 2, next = 1 - now, next_step = (step + 1) % kSteps;
      const int next_stage = (t + (step + 1) / kSteps) % C::kStages;
      if (next_step == 0) {
        cp_async_commit();                // tile t + kStages - 1 is in flight
        cp_async_wait<C::kStages - 2>();  // this thread's part of tile t + 1 has arrived
        __syncthreads();                  // every thread's has, and all have read tile t
      }
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
        // [quote fragments_ahead]
        load_fragments<C>(a[next], b[next], a_tiles + next_stage * kATile,
                          b_tiles + next_stage * kBTile, at, next_step, i);
        if (next_step > 0) load_stage(t + C::kStages - 1, step * C::kMmaM + i);  // over tile t - 1
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[now][i], b[now][j]);
        // [end quote]
      }
    }
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

}  // namespace fragments_ahead

template <class T>
struct FragmentsAhead : fragments_ahead::KernelLevel<wide_tiles::Config<T>> {
  static constexpr LevelText text{
      .name = "fragments_ahead",
      .changed = "ldmatrix of k step s + 1, and the copies, between the mma.sync of step s",
      .expect =
          "ldmatrix runs during mma.sync whose operands are loaded; its addresses, computed in the "
          "same place, take back part of the gain",
      .cost = "a second set of fragments: 32 registers, close to the limit",
  };

  static Claims claims(const ProblemT<T>& p) {
    const double ratio = std::is_same_v<T, bf16> ? 1.04 : 1.03;  // fp16 gains less: 1.039 to 1.050
    return async_copy_claims(
        {shared_loads().conflict_free(), pair_stores(p), faster_than_previous(ratio)});
  }
};

}  // namespace cookbook::gemm
