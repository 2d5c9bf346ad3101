// SPDX-License-Identifier: MIT
// Tiles of the levels for Hopper: loaded by TMA, multiplied by wgmma. Layout as in tile.cuh.
#pragma once

#include "chapters/10_flash_attention/tile.cuh"
#include "common/device/cuda.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/sync.cuh"
#include "common/device/tma.cuh"
#include "common/device/wgmma.cuh"

namespace cookbook::attention {

inline constexpr int kWarpgroup = 128;  // threads

/// Starts the copy of kRows rows of one head, from position first_row on, panel by panel.
/// `panel_rows`: rows of the tile's panels, if the tile has more than kRows.
template <int kHeadDim, int kRows, int kPanelRows = kRows>
__device__ __forceinline__ void load_tile(unsigned char* tile, const TensorMap* map, uint64_t* full,
                                          int head, int first_row, int batch) {
#pragma unroll
  for (int d = 0; d < kHeadDim; d += kPanel) {
    tma_load_4d(tile + d / kPanel * kPanelRows * 128, map, full, d, head, first_row, batch);
  }
}

/// s = Q K^T, 64 queries x kBlockN keys. Both operands are K-major: d is the k of the wgmma. `q`:
/// the warpgroup's first row; its panels have kBlockM rows. Only issues the wgmma.
template <class T, int kHeadDim, int kBlockM, int kBlockN>
__device__ __forceinline__ void issue_scores(float (&s)[kBlockN / 2], const unsigned char* q,
                                             const unsigned char* k) {
  const uint64_t q_desc = wgmma_descriptor<Swizzle::b128>(q, 0, 1024);
  const uint64_t k_desc = wgmma_descriptor<Swizzle::b128>(k, 0, 1024);
#pragma unroll
  for (int d = 0; d < kHeadDim; d += 16) {
    const uint32_t panel = d / kPanel, within = d % kPanel * 2;
    wgmma_m64k16<kBlockN, T>(s, wgmma_descriptor_advance(q_desc, panel * kBlockM * 128 + within),
                             wgmma_descriptor_advance(k_desc, panel * kBlockN * 128 + within),
                             d > 0);
  }
}

/// o += P V with P in registers: 64 queries x kHeadDim. Only issues the wgmma. V is stored
/// [key][d]: d (n) is contiguous, and k = key runs down the rows (Major::mn). Strides of its
/// descriptor: 1,024 bytes per eight keys, one panel per 64 columns.
template <class T, int kHeadDim, int kBlockN>
__device__ __forceinline__ void issue_output(float (&o)[kHeadDim / 2],
                                             const uint32_t (&p)[kBlockN / 16][4],
                                             const unsigned char* v) {
  const uint64_t v_desc = wgmma_descriptor<Swizzle::b128>(v, kBlockN * 128, 1024);
#pragma unroll
  for (int j = 0; j < kBlockN / 16; ++j) {
    wgmma_m64k16<kHeadDim, T, Major::k, Major::mn>(
        o, p[j], wgmma_descriptor_advance(v_desc, j * 16 * 128), true);
  }
}

/// One batch: s = Q K^T, issued and committed; the caller waits for it.
template <class T, int kHeadDim, int kBlockM, int kBlockN>
__device__ __forceinline__ void start_scores(float (&s)[kBlockN / 2], const unsigned char* q,
                                             const unsigned char* k) {
  wgmma_fence_operand(s);
  wgmma_fence();
  issue_scores<T, kHeadDim, kBlockM, kBlockN>(s, q, k);
  wgmma_commit();
}

/// One batch: o += P V, issued and committed; the caller waits for it.
template <class T, int kHeadDim, int kBlockN>
__device__ __forceinline__ void start_output(float (&o)[kHeadDim / 2],
                                             const uint32_t (&p)[kBlockN / 16][4],
                                             const unsigned char* v) {
  wgmma_fence_operand(o);
  wgmma_fence();
  issue_output<T, kHeadDim, kBlockN>(o, p, v);
  wgmma_commit();
}

/// Waits until at most kInFlight batches are in flight. `registers`: the accumulators of a batch
/// that has finished by then.
template <int kInFlight, int kCount>
__device__ __forceinline__ void wait_for_batch(float (&registers)[kCount]) {
  wgmma_wait<kInFlight>();
  wgmma_fence_operand(registers);
}

}  // namespace cookbook::attention
