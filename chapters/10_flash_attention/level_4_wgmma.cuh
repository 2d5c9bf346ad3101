// SPDX-License-Identifier: MIT
// Level 4: TMA brings the tiles, wgmma multiplies them from shared memory. Two warpgroups of 64
// queries do everything in turn: wait for a tile, multiply, softmax, write the weights to shared
// memory, multiply. Nothing overlaps but the copy of the next tile.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "chapters/10_flash_attention/wgmma_tile.cuh"

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
    alignas(1024) unsigned char p[kConsumers][64 * kBlockN * 2];
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
    wgmma_fence_operand(s);
    wgmma_fence();
    issue_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_operand(s);
    __syncthreads();  // no warpgroup reads K any more
    if (threadIdx.x == 0 && n > 0) load_k(n - 1);

    // Step 2: online softmax; the weights go to shared memory, rounded.
    mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
    float rescale[2];
    online_softmax(s, rows, rescale, shape.scale_log2);
    scale_rows(acc, rescale);
    store_weights<T, kBlockN>(smem.p[warpgroup], s);
    fence_proxy_async();                            // wgmma reads them through the async proxy
    named_barrier_sync(1 + warpgroup, kWarpgroup);  // all four warps have written

    // Step 3: the output so far.
    mbarrier_wait(&smem.v_full, phase);
    wgmma_fence_operand(acc);
    wgmma_fence();
    issue_output<T, kHeadDim, kBlockN>(acc, smem.p[warpgroup], smem.v);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_fence_operand(acc);
    __syncthreads();  // no warpgroup reads V any more
    if (threadIdx.x == 0 && n > 0) load_v(n - 1);
  }

  float inverse[2], row_lse[2];
  finish_rows(rows, shape.scale_log2, inverse, row_lse);
  store_rows(o, lse, shape, batch, head, warp_query, acc, inverse, row_lse);
}

struct Wgmma : Level {
  static constexpr const char* name = "wgmma";
  static constexpr const char* changed = "TMA loads, wgmma from shared memory";
  static constexpr const char* expect =
      "no fragment loads and half of the instructions gone, products at wgmma's rate; still one "
      "thing after another, so products and softmax add up";
  static constexpr const char* cost =
      "compute capability 9.0a; P makes a trip through shared memory";
  static constexpr const char* source = __FILE__;

  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    using C = WgmmaConfig<Case<bf16, 128>>;
    const Shape& s = p.shape;
    return {p, at, sequence_map(p, at.q, s.heads_q, s.seq_q, C::kBlockM),
            sequence_map(p, at.k, s.heads_kv, s.seq_k, C::kBlockN),
            sequence_map(p, at.v, s.heads_kv, s.seq_k, C::kBlockN)};
  }
  static Claims claims(const Problem& p) {
    using C = WgmmaConfig<Case<bf16, 128>>;
    return {tma_loads("k").bytes(p.key_tile_bytes(C::kBlockM, C::kBlockN)),
            shared_stores().on("weights").conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      using C = WgmmaConfig<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(wgmma_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, plan.q_map,
             plan.k_map, plan.v_map, o, plan.buffers.lse, s, query_tiles);
    });
  }
};

}  // namespace cookbook::attention
