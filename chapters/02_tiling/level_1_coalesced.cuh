// SPDX-License-Identifier: MIT
// Level 1: the same arithmetic; the lanes of a warp now run along a row of C.
#pragma once

#include "chapters/02_tiling/problem.hpp"

namespace cookbook::sgemm {

struct CoalescedConfig {
  static constexpr int kM = 32, kN = 32;  // tile of C per block
};

template <class C>
__global__ void __launch_bounds__(C::kM* C::kN)
    coalesced_kernel(int m, int n, int k, const float* __restrict__ a, int64_t lda,
                     const float* __restrict__ b, int64_t ldb, float* __restrict__ c, int64_t ldc) {
  const int tiles_n = ceil_div(n, C::kN);
  const int tile_row = static_cast<int>(blockIdx.x) / tiles_n * C::kM;
  const int tile_col = static_cast<int>(blockIdx.x) % tiles_n * C::kN;

  // [quote coalesced]
  const int row = tile_row + static_cast<int>(threadIdx.y);
  const int col =
      tile_col + static_cast<int>(threadIdx.x);  // neighbouring lanes: neighbouring columns
  // [end quote]
  if (row >= m || col >= n) return;

  float sum = 0;
  for (int p = 0; p < k; ++p) {
    sum += a[row * lda + p] * b[p * ldb + col];
  }
  c[row * ldc + col] = sum;
}

struct Coalesced : Level {
  static constexpr LevelText text{
      .name = "coalesced",
      .changed = "threadIdx.x runs along a row of C, no longer down a column",
      .expect =
          "A is one broadcast sector, B and C four full sectors: 5 sectors per step instead of 33",
      .cost = "nothing: two indices are swapped",
  };

  static Claims claims(const Problem&) {
    return {global_loads("a").sectors_per_request(1), global_loads("b").sectors_per_request(4),
            global_stores("c").coalesced(), faster_than_previous(4)};
  }

  static void run(const Plan& plan, Stream stream) {
    using C = CoalescedConfig;
    launch_tiles<C>(coalesced_kernel<C>, dim3(C::kN, C::kM), plan, stream);
  }
};

}  // namespace cookbook::sgemm
