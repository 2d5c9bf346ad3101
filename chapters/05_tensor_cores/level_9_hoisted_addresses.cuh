// SPDX-License-Identifier: MIT
// Level 9: addresses are computed once, before the loop; the loop adds constants to them.
#pragma once

#include "chapters/05_tensor_cores/level_8_coalesced_epilogue.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace hoisted_addresses {

/// The chunks of each kRows x kCols tile of a rows x cols matrix that a thread copies: one chunk in
/// every kRowsPerPass rows. These rows have the same swizzle, so one offset serves all of them.
template <class C, int kRows, int kCols, class T>
struct TileCopy {
  static constexpr int kChunks = kCols / 8;                   // chunks per row
  static constexpr int kRowsPerPass = C::kThreads / kChunks;  // rows that the block copies per pass
  static constexpr int kPasses = kRows / kRowsPerPass;
  static_assert(kRowsPerPass % 8 == 0, "the same swizzle in every pass");

  const T* matrix;
  const T* source;  // this thread's first chunk of the next tile
  std::int64_t pass_pitch;
  int destination;           // its offset in a stage
  int rows_left, cols_left;  // of the matrix, from that chunk on

  __device__ __forceinline__ TileCopy(const T* matrix, std::int64_t pitch, int rows, int cols,
                                      int row0, int col0)
      : matrix(matrix), pass_pitch(kRowsPerPass * pitch) {
    const int chunk = static_cast<int>(threadIdx.x % kChunks);
    const int first = static_cast<int>(threadIdx.x / kChunks);
    rows_left = rows - row0 - first, cols_left = cols - col0 - chunk * 8;
    source = matrix + (row0 + first) * pitch + (col0 + chunk * 8);
    destination = C::template tile_offset<kCols>(first, chunk);
  }
  /// Starts to copy portion `portion` of kPortions of this thread's chunks.
  template <int kPortions, bool kVector>
  __device__ __forceinline__ void load(T* tile, int portion) const {
#pragma unroll
    for (int i = kPasses * portion / kPortions; i < kPasses * (portion + 1) / kPortions; ++i) {
      const int valid = i * kRowsPerPass < rows_left ? cols_left : 0;
      copy_chunk_async<kVector>(tile + destination + i * kRowsPerPass * kCols,
                                source + i * pass_pitch, valid, matrix);
    }
  }
};

/// Piece `i` of the fragments of a k step of a warp's rows of A and columns of B: 16 rows of A, 16
/// columns of B. ldmatrix.x4 moves a 16x16 piece: lanes 0-15 give its rows' first chunks, lanes
/// 16-31 the second ones. A is already in the layout of mma.sync. B is stored k by n and
/// needed n by k, so ldmatrix transposes its 8x8 matrices.
template <class C, class T>
__device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                               std::uint32_t (&b)[C::kMmaN][2], const T* a_piece,
                                               const T* b_piece, int i) {
  static_assert(C::kMmaN == 2 * C::kMmaM, "as many pieces of B as of A: square warp tiles");
  ldmatrix_x4(a[i], a_piece);        // [a]
  std::uint32_t pair[4];             // two neighbouring n8 fragments
  ldmatrix_x4_trans(pair, b_piece);  // [b]
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
  const int row0 = at.row0, col0 = at.col0;

  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  const int tiles = ceil_div(p.k, C::kBlockK);
  TileCopy<C, C::kBlockM, C::kBlockK, T> a_copy(p.a, p.lda, p.m, p.k, row0, 0);
  TileCopy<C, C::kBlockK, C::kBlockN, T> b_copy(p.b, p.ldb, p.k, p.n, 0, col0);
  // Starts the copy of a portion of the next tile into stage `stage`. Past the last tile it
  // copies zeros, which no thread uses: the count of groups stays right without a branch.
  const auto load_stage = [&](int stage, int portion) {
    a_copy.template load<kPortions, kVector>(a_tiles + stage * kATile, portion);
    b_copy.template load<kPortions, kVector>(b_tiles + stage * kBTile, portion);
  };
  const auto next_tile = [&] {
    a_copy.source += C::kBlockK, a_copy.cols_left -= C::kBlockK;
    b_copy.source += C::kBlockK * p.ldb, b_copy.rows_left -= C::kBlockK;
  };
  for (int t = 0; t < C::kStages - 1; ++t) {
#pragma unroll
    for (int portion = 0; portion < kPortions; ++portion) load_stage(t, portion);
    next_tile();
    cp_async_commit();
  }
  cp_async_wait<C::kStages - 2>();  // this thread's part of tile 0 has arrived
  __syncthreads();                  // every thread's has

  // Addresses of this lane's row of each 16x16 piece in stage 0. Pieces of A 16 rows apart, and
  // steps of B 16 rows apart, have the same swizzle, so the offsets between them are constants.
  const T* a_rows[kSteps];    // of k step s, piece 0
  const T* b_rows[C::kMmaM];  // of k step 0, piece i
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    a_rows[s] =
        a_tiles + C::template tile_offset<C::kBlockK>(at.row + at.lane % 16, s * 2 + at.lane / 16);
  }
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    b_rows[i] = b_tiles + C::template tile_offset<C::kBlockN>(at.lane % 16,
                                                              at.col / 8 + i * 2 + at.lane / 16);
  }
  // [quote hoisted_addresses]
  const auto load_piece = [&](auto& a, auto& b, int stage, int step, int i) {
    load_fragments<C>(a, b, a_rows[step] + stage * kATile + i * 16 * C::kBlockK,
                      b_rows[i] + stage * kBTile + step * 16 * C::kBlockN, i);
  };
  // [end quote]

  // Two sets: (kWarpM, 16) of A, (16, kWarpN) of B being multiplied, and the next ones being
  // loaded.
  std::uint32_t a[2][C::kMmaM][4], b[2][C::kMmaN][2];
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) load_piece(a[0], b[0], 0, 0, i);

  int stage = 0, free_stage = C::kStages - 1;  // stages of tile t and of tile t + kStages - 1
  for (int t = 0; t < tiles; ++t) {
    const int next_stage = stage + 1 < C::kStages ? stage + 1 : 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int now = step % 2, next = 1 - now, next_step = (step + 1) % kSteps;
      if (next_step == 0) {
        cp_async_commit();                // tile t + kStages - 1 is in flight
        cp_async_wait<C::kStages - 2>();  // this thread's part of tile t + 1 has arrived
        __syncthreads();                  // every thread's has, and all have read tile t
      }
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) {
        load_piece(a[next], b[next], next_step > 0 ? stage : next_stage, next_step, i);
        if (next_step > 0) load_stage(free_stage, step * C::kMmaM + i);  // over tile t - 1
#pragma unroll
        for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<T>(acc[i][j], a[now][i], b[now][j]);
      }
    }
    next_tile();
    free_stage = stage, stage = next_stage;
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

}  // namespace hoisted_addresses

template <class T>
struct HoistedAddresses : hoisted_addresses::KernelLevel<coalesced_epilogue::Config<T>> {
  static constexpr LevelText text{
      .name = "hoisted_addresses",
      .changed = "addresses before the loop, constants inside it",
      .expect =
          "a quarter fewer instructions per tile, and no chain of them in front of an ldmatrix: "
          "mma.sync follow each other more closely",
      .cost = "eight pointers per thread; every pass must have the same swizzle",
  };

  static Claims claims(const ProblemT<T>&) {
    return async_copy_claims(
        {global_stores("c").coalesced(), global_stores("c").sectors_per_request(16),
         shared_loads().conflict_free(), shared_stores().on("gather").conflict_free(),
         faster_than_previous(1.08), fraction_of_roof(0.75)});
  }
};

}  // namespace cookbook::gemm
