// SPDX-License-Identifier: MIT
// Level 3: TMA loads the tiles, wgmma multiplies them from shared memory. Each of two warpgroups of
// 64 queries does all steps in turn: wait for a tile, multiply, softmax, multiply. As in level 2
// the packed accumulators of S = Q K^T are the A operand of P V. Only the copy of the next tile
// overlaps with anything.
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"

namespace cookbook::attention {

template <class CaseT>
struct WgmmaConfig : CaseT {
  static constexpr int kConsumers = 2;  // warpgroups, 64 queries each
  static constexpr int kThreads = kConsumers * kWarpgroup;
  static constexpr int kBlockM = 64 * kConsumers;  // queries per block
  static constexpr int kBlockN = 128;              // keys per tile
  static constexpr int kTileBytes = kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char q[kBlockM * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kTileBytes];
    alignas(1024) unsigned char v[kTileBytes];
    uint64_t q_full, k_full, v_full;
  };
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    wgmma_kernel(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                 const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                 Shape shape, int query_tiles) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warpgroup = warp_idx_uniform() / 4;
  const auto [first_query, head, batch] =
      tile_index(blockIdx.x, query_tiles, kBlockM, shape.heads_q);
  const int kv_head = shape.kv_head(head);
  const int tiles = key_tiles<kBlockM, kBlockN>(shape, first_query);

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    mbarrier_init(&smem.k_full, 1);
    mbarrier_init(&smem.v_full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  const auto load_k = [&](int n) {
    mbarrier_arrive_expect_tx(&smem.k_full, C::kTileBytes);
    load_tile<kHeadDim, kBlockN>(smem.k, &k_map, &smem.k_full, kv_head, n * kBlockN, batch);
  };
  const auto load_v = [&](int n) {
    mbarrier_arrive_expect_tx(&smem.v_full, C::kTileBytes);
    load_tile<kHeadDim, kBlockN>(smem.v, &v_map, &smem.v_full, kv_head, n * kBlockN, batch);
  };
  if (threadIdx.x == 0 && tiles > 0) {
    mbarrier_arrive_expect_tx(&smem.q_full, kBlockM * kHeadDim * 2);
    load_tile<kHeadDim, kBlockM>(smem.q, &q_map, &smem.q_full, head, first_query, batch);
    load_k(tiles - 1);
    load_v(tiles - 1);
  }

  const unsigned char* q_tile = smem.q + warpgroup * 64 * 128;  // this warpgroup's rows
  const int warp_query = first_query + warp_idx_uniform() * 16;
  float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
  RowStates rows;
  uint32_t phase = 0;
  if (tiles > 0) mbarrier_wait(&smem.q_full, 0);
  for (int n = tiles - 1; n >= 0; --n, phase ^= 1) {
    // Step 1: scores.
    float s[kBlockN / 2];  // (64 queries, keys) per warpgroup
    mbarrier_wait(&smem.k_full, phase);
    // [quote wgmma]
    start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k);
    wait_for_batch<0>(s);
    __syncthreads();  // no warpgroup reads K any more
    if (threadIdx.x == 0 && n > 0) load_k(n - 1);
    // [end quote]

    // Step 2: online softmax; the weights stay in registers, rounded and packed in pairs.
    mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
    float rescale[2];
    online_softmax(s, rows, rescale, shape.scale_log2);
    scale_rows(acc, rescale);
    uint32_t p[kBlockN / 16][4];  // (64 queries, keys) as A operands of 16 keys
    pack_weights<T>(p, s);

    // Step 3: add P V to the output.
    mbarrier_wait(&smem.v_full, phase);
    start_output<T, kHeadDim, kBlockN>(acc, p, smem.v);
    wait_for_batch<0>(acc);
    __syncthreads();  // no warpgroup reads V any more
    if (threadIdx.x == 0 && n > 0) load_v(n - 1);
  }

  finish_and_store(o, lse, shape, batch, head, warp_query, acc, rows);
}

struct Wgmma : HopperLevel<WgmmaConfig> {
  static constexpr LevelText text{
      .name = "wgmma",
      .changed = "TMA loads, wgmma from shared memory",
      .expect =
          "no fragment loads and half of the instructions gone, matrix multiplications at wgmma's "
          "rate; still one step after another, so their time and the softmax's add up",
      .cost = "compute capability 9.0a; the accumulators of a whole warpgroup",
  };

  static Claims claims(const Problem& p) { return key_claims(p, faster_than_previous(1.5)); }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return wgmma_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
