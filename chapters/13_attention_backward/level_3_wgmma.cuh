// SPDX-License-Identifier: MIT
// Level 3: wgmma, and TMA loads. A block has 128 keys: each of two warpgroups computes s and dp of
// 64 queries with its own 64 keys, and dk and dv of these. p and ds go through shared memory, where
// wgmma reads them transposed (for dv and dk) or as they are (for dq). One step after another.
#pragma once

#include "chapters/13_attention_backward/hopper.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct WgmmaConfig : HopperConfig<kDim> {
  using Base = HopperConfig<kDim>;
  static constexpr int kThreads = Base::kConsumers * kWarpgroup;
  struct Smem {
    KeyTiles<Base> keys;
    QueryStage<Base> stage;
    TileStats<Base> stats;
    alignas(1024) unsigned char p[Base::kConsumers][64 * 64 * 2];  // (queries, 64 keys)
    alignas(1024) unsigned char ds[Base::kConsumers][64 * 64 * 2];
    uint64_t keys_full, full;
  };
};

/// p and ds of a tile of 64 queries (rows) and 64 keys, in place of s and dp.
template <int kCount, class Stats>
__device__ __forceinline__ void weights_by_query(float (&s)[kCount], float (&dp)[kCount],
                                                 const Stats& stats, const Shape& shape,
                                                 int first_query, int first_key) {
  const int warp_row = warp_idx() % 4 * 16, row = warp_row + lane_idx() / 4;
  mask_tile<2 * kCount>(s, shape, first_query + warp_row, first_key);
  const float lse[2] = {stats.lse[row], stats.lse[row + 8]};
  const float delta[2] = {stats.delta[row], stats.delta[row + 8]};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    s[i] = ex2_approx_ftz(s[i] * shape.scale_log2 - lse[row_of(i)]);
    dp[i] = s[i] * (dp[i] - delta[row_of(i)]);
  }
}

/// The five matrix multiplications of a tile, for warpgroup `consumer`. sync(): a barrier of the
/// warpgroups. Levels 3 and 4.
template <class C, class Smem, class Stage, class Stats, class Sync>
__device__ __forceinline__ void add_tile(float (&dk)[C::kHeadDim / 2], float (&dv)[C::kHeadDim / 2],
                                         Smem& smem, const Stage& stage, const Stats& stats,
                                         float* sums, const Shape& shape, int consumer,
                                         int first_query, int first_key, const Sync& sync) {
  constexpr int kHeadDim = C::kHeadDim;
  const int warp_row = warp_idx() % 4 * 16;
  float s[32], dp[32];  // (64 queries, 64 keys) per warpgroup
  start_scores<bf16, kHeadDim, 64, 64>(s, stage.q, smem.keys.k[consumer]);
  wait_for_batch<0>(s);
  start_scores<bf16, kHeadDim, 64, 64>(dp, stage.d_o, smem.keys.v[consumer]);
  wait_for_batch<0>(dp);
  weights_by_query(s, dp, stats, shape, first_query, first_key + 64 * consumer);

  // [quote through_shared]
  uint32_t p[4][4], ds[4][4];
  pack_weights<bf16>(p, s);
  pack_weights<bf16>(ds, dp);
  store_operand<64, 64>(smem.p[consumer], warp_row, p);
  store_operand<64, 64>(smem.ds[consumer], warp_row, ds);
  fence_proxy_async();  // plain writes, before wgmma reads them
  sync();
  start_transposed<kHeadDim>(dv, smem.p[consumer], stage.d_o);
  wait_for_batch<0>(dv);
  start_transposed<kHeadDim>(dk, smem.ds[consumer], stage.q);
  wait_for_batch<0>(dk);
  // [end quote]

  float dq[QueryPart<C>::kCount];
  const uint64_t ds_desc = wgmma_descriptor<Swizzle::b128>(smem.ds[0], 0, 1024);
  start_query_part<C, Major::k>(dq, smem.keys, consumer, [&](int j) {
    return wgmma_descriptor_advance(ds_desc, j / 4 * 64 * 128 + j % 4 * 32);
  });
  wait_for_batch<0>(dq);
  add_to_sums<kHeadDim>(sums + warp_row * kHeadDim + QueryPart<C>::first_column(consumer), dq);
  sync();  // no warpgroup reads the tiles any more
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    wgmma_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
                 Shape shape, int key_tiles, float scale) {
  using Base = typename C::Base;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int consumer = warp_idx_uniform() / 4;
  const KeyTile own = key_tile_of(blockIdx.x, key_tiles, C::kKeys, shape.heads_kv);
  const QueryTiles tiles = query_tiles_of<C::kQueries>(shape, own.kv_head, own.first_key);
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.keys_full, 1);
    mbarrier_init(&smem.full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) load_keys<Base>(smem.keys, &smem.keys_full, maps, own);

  float dk_acc[C::kHeadDim / 2] = {}, dv_acc[C::kHeadDim / 2] = {};  // (64 keys, d) per warpgroup
  mbarrier_wait(&smem.keys_full, 0);
  QueryCursor at(tiles);
  for (int n = 0; n < tiles.count; ++n, at.advance(tiles)) {
    const int head = at.head, first_query = at.tile * C::kQueries;
    const int64_t stat = stats.at(own.batch, shape.heads_q, head, first_query);
    if (threadIdx.x == 0) {
      load_queries<Base>(smem.stage, smem.stats, &smem.full, maps, stats, stat, head, first_query,
                         own.batch);
    }
    mbarrier_wait(&smem.full, n & 1);
    add_tile<Base>(dk_acc, dv_acc, smem, smem.stage, smem.stats, stats.dq + stat * C::kHeadDim,
                   shape, consumer, first_query, own.first_key, [] { __syncthreads(); });
  }
  store_gradients(dk, dv, shape, own, tiles.first_head, warp_idx_uniform() * 16, dk_acc, dv_acc,
                  scale);
}

struct Wgmma : HopperLevel<WgmmaConfig> {
  static constexpr LevelText text{
      .name = "wgmma",
      .changed = "TMA loads, wgmma from shared memory; 128 keys per block",
      .expect =
          "350 TFLOP/s: no fragment loads, matrix multiplications at wgmma's rate, and half as "
          "many "
          "atomics; still one step after another",
      .cost = "compute capability 9.0a; one block per SM",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("q").bytes(query_bytes(p)), tma_loads("do").bytes(query_bytes(p)),
            shared_stores().on("operand").conflict_free(), faster_than_previous(1.5)};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return wgmma_kernel<decltype(config)>; });
    plan.after(stream);
  }
};

}  // namespace cookbook::attention::backward
