// SPDX-License-Identifier: MIT
// Level 1: tensor cores through WMMA, one warp per 16x16 tile of C, operands from global memory.
#pragma once

#include "chapters/05_tensor_cores/tile_io.cuh"
#include "common/device/cuda.cuh"
#include "common/device/wmma.cuh"

namespace cookbook::gemm {

namespace wmma_global {

namespace wmma = nvcuda::wmma;

template <class T>
struct Config {
  using Element = T;
  static constexpr int kWarpsM = 4, kWarpsN = 2;
  static constexpr int kBlockM = kWarpsM * 16, kBlockN = kWarpsN * 16;
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kGroup = 8;
  static constexpr std::size_t kSmemBytes = kWarpsM * kWarpsN * 256 * sizeof(float);
};

/// A fragment from the 16x16 tile at (row, col) of a rows x cols matrix. WMMA only reads whole
/// tiles of a matrix with aligned rows. At an edge, or without alignment, the warp first copies the
/// tile to shared memory, zero-filled out of bounds.
template <bool kVector, class Fragment, class T>
__device__ __forceinline__ void load_fragment(Fragment& fragment, T* staging, const T* matrix,
                                              std::int64_t pitch, int rows, int cols, int row,
                                              int col) {
  if (kVector && row + 16 <= rows && col + 16 <= cols) {
    wmma::load_matrix_sync(fragment, matrix + row * pitch + col, static_cast<unsigned>(pitch));
    return;
  }
  const int lane = static_cast<int>(threadIdx.x % 32);
  row += lane / 2, col += lane % 2 * 8;  // half a row per lane
  store_vector(staging + lane * 8,
               load_chunk<false>(matrix + row * pitch + col, row < rows ? cols - col : 0));
  __syncwarp();  // the tile is complete
  wmma::load_matrix_sync(fragment, staging, 16);
  __syncwarp();  // all lanes have read it before it is overwritten
}

template <class C, bool kVector>
__global__ void __launch_bounds__(C::kThreads) kernel(GemmArgs<typename C::Element> p) {
  using T = typename C::Element;
  const TileIndex tile = grouped_tile(static_cast<int>(blockIdx.x), ceil_div(p.m, C::kBlockM),
                                      ceil_div(p.n, C::kBlockN), C::kGroup);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int row0 = tile.m * C::kBlockM + warp / C::kWarpsN * 16;
  const int col0 = tile.n * C::kBlockN + warp % C::kWarpsN * 16;
  if (row0 >= p.m || col0 >= p.n) return;  // the whole warp exits: no barrier of the block follows

  float* sums = dynamic_shared<float>() + warp * 256;  // (16, 16) of C, per warp
  T* staging = reinterpret_cast<T*>(sums);  // (16, 16) of A or B, before C needs the space

  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;  // (16, 16) of A
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> b;  // (16, 16) of B
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;          // (16, 16) of C
  wmma::fill_fragment(acc, 0.0f);

  // [quote wmma_global]
  for (int k0 = 0; k0 < p.k; k0 += 16) {
    load_fragment<kVector>(a, staging, p.a, p.lda, p.m, p.k, row0, k0);
    load_fragment<kVector>(b, staging, p.b, p.ldb, p.k, p.n, k0, col0);
    wmma::mma_sync(acc, a, b, acc);  // 4,096 FMAs for 1 KB of loads
  }
  // [end quote]

  // WMMA does not document which lane holds which element, so the conversion goes through shared
  // memory.
  wmma::store_matrix_sync(sums, acc, 16, wmma::mem_row_major);
  __syncwarp();
#pragma unroll
  for (int pass = 0; pass < 4; ++pass) {
    const int row = pass * 4 + lane / 8, col = lane % 8 * 2;
    store_pair<kVector>(p, row0 + row, col0 + col, sums[row * 16 + col], sums[row * 16 + col + 1]);
  }
}

}  // namespace wmma_global

template <class T>
struct WmmaGlobal : TileLevel<wmma_global::Config<T>> {
  using C = wmma_global::Config<T>;
  static constexpr LevelText text{
      .name = "wmma_global",
      .changed = "one warp per 16x16 tile, multiplied by WMMA",
      .expect =
          "a warp loads 1 KB for 4,096 FMAs instead of 66 bytes for 32: eight times less traffic "
          "to L1 per FMA, which is still the limit",
      .cost = "8 KB of shared memory for edges and the conversion of C",
  };

  static Claims claims(const ProblemT<T>& p) {
    // Every tile of A is read once per 16 columns of C, every tile of B once per 16 rows.
    return {global_loads("a").bytes(2.0 * static_cast<double>(p.m * p.k * ((p.n + 15) / 16))),
            global_loads("b").bytes(2.0 * static_cast<double>(p.k * p.n * ((p.m + 15) / 16))),
            faster_than_previous(2.0)};
  }
  static void run(const typename TileLevel<C>::Plan& plan, Stream stream) {
    // load_matrix_sync requires 32-byte aligned tiles.
    const bool vector = vectors_fit(plan.problem, plan.buffers) &&
                        reinterpret_cast<std::uintptr_t>(plan.buffers.a) % 32 == 0 &&
                        reinterpret_cast<std::uintptr_t>(plan.buffers.b) % 32 == 0;
    TileLevel<C>::launch_tiles(
        vector ? wmma_global::kernel<C, true> : wmma_global::kernel<C, false>, plan, stream);
  }
};

}  // namespace cookbook::gemm
