// SPDX-License-Identifier: MIT
// Level 9: addresses are computed once, before the loop; the loop adds constants to them.
#pragma once

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace hoisted_addresses {

template <class T>
struct Config {
  using Element = T;
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;  // 64 x 64
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;  // m16n8k16 per warp and k step
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = 8;
  static constexpr int kStages = 4;  // 192 KB: one block on a Hopper SM
  static constexpr std::size_t kSmemBytes = kStages * sizeof(T) * (kBlockM + kBlockN) * kBlockK;
};

/// Offset of chunk `chunk` (8 elements, 16 bytes) of row `row` in a tile of kCols columns. The
/// eight rows of an 8x8 matrix store the same chunk at eight different positions, four banks each.
template <int kCols>
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  static_assert(kCols % 64 == 0, "whole lines of 128 bytes: eight chunks");
  return row * kCols + (chunk ^ (row & 7)) * 8;
}

/// The chunks of each kRows x kCols tile of a rows x cols matrix that a thread copies: one chunk in
/// every kRowsPerPass rows. These rows have the same swizzle, so one offset serves all of them.
template <int kRows, int kCols, int kThreads, class T>
struct TileCopy {
  static constexpr int kChunks = kCols / 8;                // chunks per row
  static constexpr int kRowsPerPass = kThreads / kChunks;  // rows that the block copies per pass
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
    destination = tile_offset<kCols>(first, chunk);
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

  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(p.m, C::kBlockM),
                                      ceil_div(p.n, C::kBlockN), C::kGroup);
  const int row0 = tile.m * C::kBlockM, col0 = tile.n * C::kBlockN;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int warp_row = warp / C::kWarpsN * C::kWarpM, warp_col = warp % C::kWarpsN * C::kWarpN;

  float acc[C::kMmaM][C::kMmaN][4] = {};  // (kWarpM, kWarpN) of C, four elements per thread and mma

  const int tiles = ceil_div(p.k, C::kBlockK);
  TileCopy<C::kBlockM, C::kBlockK, C::kThreads, T> a_copy(p.a, p.lda, p.m, p.k, row0, 0);
  TileCopy<C::kBlockK, C::kBlockN, C::kThreads, T> b_copy(p.b, p.ldb, p.k, p.n, 0, col0);
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
    a_rows[s] = a_tiles + tile_offset<C::kBlockK>(warp_row + lane % 16, s * 2 + lane / 16);
  }
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    b_rows[i] = b_tiles + tile_offset<C::kBlockN>(lane % 16, warp_col / 8 + i * 2 + lane / 16);
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

  // The tile of C replaces those of A and B, with the same swizzle. It is stored 16 bytes per
  // thread: a warp stores 512 contiguous bytes of a row.
  cp_async_wait<0>();   // no copy is in flight
  __syncthreads();      // ... in any thread, and all have read their last fragments
  T* c_tile = a_tiles;  // (kBlockM, kBlockN)
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < C::kMmaN; ++j) {
      const int row = warp_row + i * 16 + lane / 4, chunk = warp_col / 8 + j;
      T* top = c_tile + tile_offset<C::kBlockN>(row, chunk) + lane % 4 * 2;
      T* bottom = c_tile + tile_offset<C::kBlockN>(row + 8, chunk) + lane % 4 * 2;
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
    const T* from = c_tile + tile_offset<C::kBlockN>(row, chunk);
    store_chunk<kVector>(p, row0 + row, col0 + chunk * 8,
                         load_vector<Pack<T, 8>>(from));  // [leave]
  }
}

}  // namespace hoisted_addresses

template <class T>
struct HoistedAddresses : NnLevel<T> {
  using Plan = typename NnLevel<T>::Plan;
  static constexpr LevelText text{
      .name = "hoisted_addresses",
      .changed = "addresses before the loop, constants inside it",
      .expect =
          "a quarter fewer instructions per tile, and no chain of them in front of an ldmatrix: "
          "mma.sync follow each other more closely",
      .cost = "eight pointers per thread; every pass must have the same swizzle",
  };

  static Claims claims(const ProblemT<T>&) {
    Claims claims = async_copy_claims();
    claims.insert(claims.end(),
                  {global_stores("c").coalesced(), global_stores("c").sectors_per_request(16),
                   shared_loads().conflict_free(), shared_stores().on("gather").conflict_free(),
                   faster_than_previous(1.08), fraction_of_roof(0.75)});
    return claims;
  }
  static Support supports(const ProblemT<T>& problem, const DeviceInfo& device) {
    return NnLevel<T>::supports_nn(problem, device, hoisted_addresses::Config<T>::kSmemBytes);
  }
  static void run(const Plan& plan, Stream stream) {
    using C = hoisted_addresses::Config<T>;
    const auto& p = plan.problem;
    launch(vectors_fit(p, plan.buffers) ? hoisted_addresses::kernel<C, true>
                                        : hoisted_addresses::kernel<C, false>,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
           stream, gemm_args(p, plan.buffers));
  }
};

}  // namespace cookbook::gemm
