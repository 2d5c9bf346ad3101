// SPDX-License-Identifier: MIT
// Matrix multiplications of a warp by mma.sync, with tiles as in tile.cuh. A configuration C has
// kMTiles tiles of 16 rows per warp, kBlockM rows, kBlockN keys and kHeadDim columns.
#pragma once

#include "chapters/10_flash_attention/tile.cuh"
#include "common/device/mma.cuh"

namespace cookbook::attention {

/// The four accumulators of 8-column group j.
template <int kCount>
__device__ __forceinline__ float (&group(float (&acc)[kCount], int j))[4] {
  return reinterpret_cast<float(&)[4]>(acc[4 * j]);
}

/// s[m] = Q K^T for this warp's tiles of 16 queries.
template <class C>
__device__ __forceinline__ void mma_scores(float (&s)[C::kMTiles][C::kBlockN / 2],
                                           const unsigned char* q_tile, const unsigned char* k_tile,
                                           int warp_row) {
  const int lane = lane_idx();
#pragma unroll 2
  for (int d = 0; d < C::kHeadDim; d += 16) {
    uint32_t a[C::kMTiles][4];
#pragma unroll
    for (int m = 0; m < C::kMTiles; ++m) {
      const int row = warp_row + 16 * m + lane % 16;
      ldmatrix_x4(a[m], q_tile + tile_offset<C::kBlockM>(row, d + lane / 16 * 8));  // [fragments]
    }
#pragma unroll
    for (int n = 0; n < C::kBlockN; n += 16) {
      uint32_t b[4];  // two groups of 8 keys
      const int row = n + lane / 16 * 8 + lane % 8;
      ldmatrix_x4(b, k_tile + tile_offset<C::kBlockN>(row, d + lane / 8 % 2 * 8));  // [fragments]
#pragma unroll
      for (int m = 0; m < C::kMTiles; ++m) {
        mma_m16n8k16<typename C::Element>(group(s[m], n / 8), a[m], {b[0], b[1]});
        mma_m16n8k16<typename C::Element>(group(s[m], n / 8 + 1), a[m], {b[2], b[3]});
      }
    }
  }
}

/// o[m] += P V.
template <class C>
__device__ __forceinline__ void mma_output(float (&o)[C::kMTiles][C::kHeadDim / 2],
                                           const uint32_t (&p)[C::kMTiles][C::kBlockN / 16][4],
                                           const unsigned char* v_tile) {
  const int lane = lane_idx();
#pragma unroll
  for (int j = 0; j < C::kBlockN / 16; ++j) {
#pragma unroll
    for (int d = 0; d < C::kHeadDim; d += 16) {
      uint32_t b[4];  // two groups of 8 columns of V; ldmatrix transposes, as V is [key][d]
      ldmatrix_x4_trans(b, v_tile + tile_offset<C::kBlockN>(16 * j + lane % 16, d + lane / 16 * 8));
#pragma unroll
      for (int m = 0; m < C::kMTiles; ++m) {
        mma_m16n8k16<typename C::Element>(group(o[m], d / 8), p[m][j], {b[0], b[1]});
        mma_m16n8k16<typename C::Element>(group(o[m], d / 8 + 1), p[m][j], {b[2], b[3]});
      }
    }
  }
}

}  // namespace cookbook::attention
