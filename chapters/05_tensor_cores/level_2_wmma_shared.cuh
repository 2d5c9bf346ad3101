// SPDX-License-Identifier: MIT
// Level 2: WMMA on tiles in shared memory: the warps of a block share the loaded tiles.
#pragma once

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cuda.cuh"
#include "common/device/wmma.cuh"

namespace cookbook::gemm {

namespace wmma_shared {

namespace wmma = nvcuda::wmma;

template <class T>
struct Config {
  using Element = T;
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kBlockM / kWarpsM, kWarpN = kBlockN / kWarpsN;  // 64 x 32
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = 8;
  static constexpr std::size_t kSmemBytes = sizeof(T) * (kBlockM + kBlockN) * kBlockK;

  /// Offset of chunk `chunk` (8 elements, 16 bytes) of row `row` in a tile of kCols columns.
  template <int kCols>
  static __device__ __forceinline__ int tile_offset(int row, int chunk) {
    return row * kCols + chunk * 8;
  }
  /// Copies the chunk at `source` to shared memory, `valid` elements of it; the others are zero.
  template <bool kVector>
  static __device__ __forceinline__ void copy_chunk(T* destination, const T* source, int valid,
                                                    const T* /*matrix*/) {
    store_vector(destination, load_chunk<kVector>(source, valid));  // [fill]
  }
};

/// The block copies the kRows x kCols tile at (row0, col0) of a rows x cols matrix.
template <class C, int kRows, int kCols, bool kVector, class T>
__device__ __forceinline__ void load_tile(T* tile, const T* matrix, std::int64_t pitch, int rows,
                                          int cols, int row0, int col0) {
  constexpr int kChunks = kCols / 8;                   // chunks per row
  constexpr int kRowsPerPass = C::kThreads / kChunks;  // rows that the block copies per pass
  const int chunk = static_cast<int>(threadIdx.x % kChunks);
  const int first = static_cast<int>(threadIdx.x / kChunks);
  const int rows_left = rows - row0 - first, cols_left = cols - col0 - chunk * 8;
  const T* source = matrix + (row0 + first) * pitch + (col0 + chunk * 8);
#pragma unroll
  for (int i = 0; i < kRows / kRowsPerPass; ++i) {
    T* destination = tile + C::template tile_offset<kCols>(first + i * kRowsPerPass, chunk);
    const int valid = i * kRowsPerPass < rows_left ? cols_left : 0;
    C::template copy_chunk<kVector>(destination, source, valid, matrix);
    source += kRowsPerPass * pitch;
  }
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads, 2) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  constexpr int kM = C::kWarpM / 16, kN = C::kWarpN / 16;  // 16x16 fragments per warp and k step
  T* a_tile = dynamic_shared<T>();                         // (kBlockM, kBlockK)
  T* b_tile = a_tile + C::kBlockM * C::kBlockK;            // (kBlockK, kBlockN)

  const auto [row0, col0, warp_row, warp_col, warp, lane] = warp_tile<C>(p);

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[kM][kN];  // (kWarpM, kWarpN) of C
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) wmma::fill_fragment(acc[i][j], 0.0f);
  }

  for (int k0 = 0; k0 < p.k; k0 += C::kBlockK) {
    load_tile<C, C::kBlockM, C::kBlockK, kVector>(a_tile, p.a, p.lda, p.m, p.k, row0, k0);
    load_tile<C, C::kBlockK, C::kBlockN, kVector>(b_tile, p.b, p.ldb, p.k, p.n, k0, col0);
    __syncthreads();  // the tiles are complete
#pragma unroll
    for (int k = 0; k < C::kBlockK; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[kM];  // (kWarpM, 16)
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> b[kN];  // (16, kWarpN)
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        // [quote wmma_shared]
        wmma::load_matrix_sync(a[i], a_tile + (warp_row + i * 16) * C::kBlockK + k, C::kBlockK);
        // [end quote]
      }
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        wmma::load_matrix_sync(b[j], b_tile + k * C::kBlockN + warp_col + j * 16, C::kBlockN);
      }
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
      }
    }
    __syncthreads();  // all threads have read them
  }

  // All threads have read the tiles. Each warp converts one 16x16 piece after the other in 1 KB of
  // them.
  float* sums = dynamic_shared<float>() + warp * 256;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      wmma::store_matrix_sync(sums, acc[i][j], 16, wmma::mem_row_major);
      __syncwarp();  // the piece is complete
#pragma unroll
      for (int pass = 0; pass < 4; ++pass) {
        const int row = pass * 4 + lane / 8, col = lane % 8 * 2;
        store_pair<kVector>(p, row0 + warp_row + i * 16 + row, col0 + warp_col + j * 16 + col,
                            sums[row * 16 + col], sums[row * 16 + col + 1]);
      }
      __syncwarp();  // all have read it
    }
  }
}

/// A level that launches this kernel.
template <class C>
struct KernelLevel : TileLevel<C> {
  static void run(const typename TileLevel<C>::Plan& plan, Stream stream) {
    const bool vector = vectors_fit(plan.problem, plan.buffers);
    TileLevel<C>::launch_tiles(vector ? kernel<C, true> : kernel<C, false>, plan, stream);
  }
};

}  // namespace wmma_shared

template <class T>
struct WmmaShared : wmma_shared::KernelLevel<wmma_shared::Config<T>> {
  static constexpr LevelText text{
      .name = "wmma_shared",
      .changed = "128x128 tiles in shared memory, 64x32 of C per warp",
      .expect =
          "a tile is read once per 128 columns or rows instead of 16: an eighth of the traffic; "
          "bank conflicts of the tiles become the limit",
      .cost = "32 KB of shared memory, 64 accumulators per thread, two barriers per tile",
  };

  static Claims claims(const ProblemT<T>& p) {
    using C = wmma_shared::Config<T>;
    return {global_loads("a").bytes(
                2.0 * static_cast<double>(p.m * p.k * ((p.n + C::kBlockN - 1) / C::kBlockN))),
            global_loads("b").bytes(
                2.0 * static_cast<double>(p.k * p.n * ((p.m + C::kBlockM - 1) / C::kBlockM))),
            global_loads().coalesced(), global_loads().sectors_per_request(16),
            faster_than_previous(1.5)};
  }
};

}  // namespace cookbook::gemm
