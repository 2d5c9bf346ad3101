// SPDX-License-Identifier: MIT
// Level 2: the block copies a 32 x 32 tile of A and of B to shared memory and reads operands from
// there.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct SharedTileConfig {
  static constexpr int kM = 32, kN = 32, kK = 32;  // tile of C per block, and steps of k per tile
};

template <class C>
__global__ void __launch_bounds__(C::kM* C::kN)
    shared_tile_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                       const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                       int64_t ldc) {
  static_assert(C::kM == C::kK && C::kN == C::kK,
                "each thread copies one element of A and one of B");
  __shared__ float a_tile[C::kM][C::kK];
  __shared__ float b_tile[C::kK][C::kN];
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  const int ty = static_cast<int>(threadIdx.y), tx = static_cast<int>(threadIdx.x);
  const int row = tile_row + ty;
  const int col = tile_col + tx;

  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += C::kK) {
    // Global to shared. Elements out of bounds are zero-filled and add nothing to any sum.
    const bool a_inside = row < m && k0 + tx < k;
    const bool b_inside = k0 + ty < k && col < n;
    // [quote shared_tile]
    a_tile[ty][tx] = a_inside ? a[row * lda + k0 + tx] : 0.0f;    // [copy]
    b_tile[ty][tx] = b_inside ? b[(k0 + ty) * ldb + col] : 0.0f;  // [copy]
    __syncthreads();  // the tile is complete before any thread reads it

#pragma unroll
    for (int p = 0; p < C::kK; ++p) {
      // A warp has one ty: all lanes read one address of a_tile, a broadcast. The lanes of
      // b_tile[p] read 32 neighbouring words, one in each bank. Neither is a conflict.
      sum += a_tile[ty][p] * b_tile[p][tx];  // [product]
    }
    __syncthreads();  // all threads have read the tile before the next one overwrites it
    // [end quote]
  }
  if (row < m && col < n) c[row * ldc + col] = sum;
}

struct SharedTile : Level {
  static constexpr LevelText text{
      .name = "shared_tile",
      .changed = "tiles of A and B in shared memory: each global word is read once per block",
      .expect =
          "32 times fewer global loads; now bound by two shared loads per FMA, so little more than "
          "coalesced",
      .cost = "8 KB of shared memory, two barriers per tile",
  };

  static Claims claims(const Problem& p) {
    using C = SharedTileConfig;
    return {
        global_loads("a").bytes(a_bytes<C>(p)),
        global_loads("b").bytes(b_bytes<C>(p)),
        shared_loads().on("product").wavefronts_per_request(1),  // broadcast and row: no conflict
        shared_loads().conflict_free(),
        shared_stores().conflict_free(),
        faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = SharedTileConfig;
    launch_tiles<C>(shared_tile_kernel<C>, dim3(C::kN, C::kM), plan, stream);
  }
};

}  // namespace cookbook::sgemm
