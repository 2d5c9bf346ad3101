// SPDX-License-Identifier: MIT
// Exercise 2.3, a design: level 2 reads two words from shared memory per FMA. All lanes of a warp
// read the same word of a_tile, and need the next one in the next step of k. Change the
// multiplication, and what it needs, so that the claims hold: five loads per four FMAs instead of
// eight, without a conflict, and still one sum per thread.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct WideBroadcastConfig {
  static constexpr int kM = 32, kN = 32, kK = 32;  // tile of C per block, and steps of k per tile
};

template <class C>
__global__ void __launch_bounds__(C::kM* C::kN)
    wide_broadcast_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                          const float* __restrict__ b, int64_t ldb, float* __restrict__ c,
                          int64_t ldc) {
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
    a_tile[ty][tx] = row < m && k0 + tx < k ? a[row * lda + k0 + tx] : 0.0f;
    b_tile[ty][tx] = k0 + ty < k && col < n ? b[(k0 + ty) * ldb + col] : 0.0f;
    __syncthreads();

#pragma unroll
    for (int p = 0; p < C::kK; ++p) sum += a_tile[ty][p] * b_tile[p][tx];  // yours

    __syncthreads();
  }
  if (row < m && col < n) c[row * ldc + col] = sum;
}

struct WideBroadcast : Level {
  static constexpr LevelText text{
      .name = "wide_broadcast",
      .changed = "16 bytes of a_tile per load",
      .expect = "5 loads per 4 FMAs instead of 8, and 6 wavefronts: 16 bytes to all lanes take two",
      .cost = "three more registers",
  };

  static Claims claims(const Problem& p) {
    using C = WideBroadcastConfig;
    const auto fmas = static_cast<double>(p.m * p.n * p.k);  // per lane
    return {shared_loads().requests(fmas / 32 * 5 / 4),
            shared_loads().conflict_free(),
            shared_stores().conflict_free(),
            global_loads("a").coalesced(),
            global_loads("a").bytes(a_bytes<C>(p)),
            global_loads("b").bytes(b_bytes<C>(p))};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = WideBroadcastConfig;
    launch_tiles<C>(wide_broadcast_kernel<C>, dim3(C::kN, C::kM), plan, stream);
  }
};

}  // namespace cookbook::sgemm
