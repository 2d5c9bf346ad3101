// SPDX-License-Identifier: MIT
// Level 5: cp.async copies tiles into a ring of stages while earlier tiles are multiplied.
#pragma once

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"

namespace cookbook::gemm {

namespace multistage {

template <class T>
struct Config {
  using Element = T;
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;  // 64 x 32
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;  // m16n8k16 per warp and k step
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = 8;
  static constexpr int kStages = 3, kBlocks = 2;  // 96 KB: two blocks fit on a Hopper SM
  static constexpr std::size_t kSmemBytes = kStages * sizeof(T) * (kBlockM + kBlockN) * kBlockK;
};

/// Offset of chunk `chunk` (8 elements, 16 bytes) of row `row` in a tile of kCols columns. The
/// eight rows of an 8x8 matrix store the same chunk at eight different positions, four banks each.
template <int kCols>
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  static_assert(kCols % 64 == 0, "whole lines of 128 bytes: eight chunks");
  return row * kCols + (chunk ^ (row & 7)) * 8;
}

/// The block starts to copy the kRows x kCols tile at (row0, col0) of a rows x cols matrix.
template <int kRows, int kCols, int kThreads, bool kVector, class T>
__device__ __forceinline__ void load_tile(T* tile, const T* matrix, std::int64_t pitch, int rows,
                                          int cols, int row0, int col0) {
  constexpr int kChunks = kCols / 8;                // chunks per row
  constexpr int kRowsPerPass = kThreads / kChunks;  // rows that the block copies per pass
  const int chunk = static_cast<int>(threadIdx.x % kChunks);
  const int first = static_cast<int>(threadIdx.x / kChunks);
  const int rows_left = rows - row0 - first, cols_left = cols - col0 - chunk * 8;
  const T* source = matrix + (row0 + first) * pitch + (col0 + chunk * 8);
#pragma unroll
  for (int i = 0; i < kRows / kRowsPerPass; ++i) {
    T* destination = tile + tile_offset<kCols>(first + i * kRowsPerPass, chunk);
    const int valid = i * kRowsPerPass < rows_left ? cols_left : 0;
    copy_chunk_async<kVector>(destination, source, valid, matrix);
    source += kRowsPerPass * pitch;
  }
}

/// The fragments of k step `step` of a warp's rows of A and columns of B. ldmatrix.x4 moves a 16x16
/// piece: lanes 0-15 give its rows' first chunks, lanes 16-31 the second ones. A is
/// already in the layout of mma.sync. B is stored k by n and needed n by k, so ldmatrix transposes
/// its 8x8 matrices.
template <class C, class T>
__device__ __forceinline__ void load_fragments(std::uint32_t (&a)[C::kMmaM][4],
                                               std::uint32_t (&b)[C::kMmaN][2], const T* a_tile,
                                               const T* b_tile, int warp_row, int warp_col,
                                               int lane, int step) {
  const int row = lane % 16, chunk = lane / 16;
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
    const int offset = tile_offset<C::kBlockK>(warp_row + i * 16 + row, step * 2 + chunk);
    ldmatrix_x4(a[i], a_tile + offset);  // [a]
  }
#pragma unroll
  for (int j = 0; j < C::kMmaN; j += 2) {
    const int offset = tile_offset<C::kBlockN>(step * 16 + row, warp_col / 8 + j + chunk);
    std::uint32_t pair[4];                     // two neighbouring n8 fragments
    ldmatrix_x4_trans(pair, b_tile + offset);  // [b]
    b[j][0] = pair[0], b[j][1] = pair[1];
    b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
  }
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
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
  // Starts the copy of tile t into stage t % kStages. Past the last tile it copies zeros, which no
  // thread reads: the count of groups stays right without a branch.
  const auto load_stage = [&](int t) {
    const int stage = t % C::kStages, k0 = t * C::kBlockK;
    load_tile<C::kBlockM, C::kBlockK, C::kThreads, kVector>(a_tiles + stage * kATile, p.a, p.lda,
                                                            p.m, p.k, row0, k0);
    load_tile<C::kBlockK, C::kBlockN, C::kThreads, kVector>(b_tiles + stage * kBTile, p.b, p.ldb,
                                                            p.k, p.n, k0, col0);
    cp_async_commit();
  };
  for (int t = 0; t < C::kStages - 1; ++t) load_stage(t);

  for (int t = 0; t < tiles; ++t) {
    // [quote multistage]
    cp_async_wait<C::kStages - 2>();  // this thread's part of tile t has arrived
    __syncthreads();                  // every thread's has, and all have read tile t - 1
    load_stage(t + C::kStages - 1);   // so its stage may be filled again
    // [end quote]
    const T* a_tile = a_tiles + t % C::kStages * kATile;
    const T* b_tile = b_tiles + t % C::kStages * kBTile;
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
  }

  // Documented layout: a thread holds two neighbours in row lane / 4, and two more 8 rows below.
  const int row = row0 + warp_row + lane / 4, col = col0 + warp_col + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < C::kMmaN; ++j) {
      store_pair<kVector>(p, row + i * 16, col + j * 8, acc[i][j][0], acc[i][j][1]);
      store_pair<kVector>(p, row + i * 16 + 8, col + j * 8, acc[i][j][2], acc[i][j][3]);
    }
  }
}

}  // namespace multistage

template <class T>
struct Multistage : NnLevel<T> {
  using Plan = typename NnLevel<T>::Plan;
  static constexpr LevelText text{
      .name = "multistage",
      .changed = "cp.async into three stages, one barrier per tile",
      .expect =
          "global latency leaves the loop: two tiles are always in flight while a third is "
          "multiplied",
      .cost = "96 KB of shared memory",
  };

  static Claims claims(const ProblemT<T>& p) {
    Claims claims = async_copy_claims();
    claims.insert(claims.end(),
                  {shared_loads().conflict_free(), pair_stores(p), faster_than_previous(1.1)});
    return claims;
  }
  static Support supports(const ProblemT<T>& problem, const DeviceInfo& device) {
    return NnLevel<T>::supports_nn(problem, device, multistage::Config<T>::kSmemBytes);
  }
  static void run(const Plan& plan, Stream stream) {
    using C = multistage::Config<T>;
    const auto& p = plan.problem;
    launch(
        vectors_fit(p, plan.buffers) ? multistage::kernel<C, true> : multistage::kernel<C, false>,
        {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads), C::kSmemBytes},
        stream, gemm_args(p, plan.buffers));
  }
};

}  // namespace cookbook::gemm
