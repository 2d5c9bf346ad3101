// SPDX-License-Identifier: MIT
// Level 5: s and dp are computed transposed, keys by queries. Then the packed p and ds of a
// warpgroup are the A operands of dv += p do and dk += ds q, straight from registers: p is never in
// shared memory, and ds only for dq, which needs the keys of both warpgroups.
#pragma once

#include "chapters/13_attention_backward/level_4_specialised.cuh"

namespace cookbook::attention::backward {

template <int kDim, int kQueriesPerTile = 64, int kStageCount = 2>
struct SwappedConfig : StagedConfig<kDim, kQueriesPerTile, kStageCount> {
  using Base = StagedConfig<kDim, kQueriesPerTile, kStageCount>;
  static constexpr int kPanelBytes = Base::kKeys * 64 * 2;  // of ds: all keys, 64 queries
  struct Smem {
    KeyTiles<Base> keys;
    QueryStage<Base> stages[Base::kStages];
    TileStats<Base> stats[Base::kStages];
    // Two, so that one barrier per tile suffices: a warpgroup that writes one of them has passed
    // the barrier after which the other warpgroup had read it.
    alignas(1024) unsigned char ds[2][Base::kQueries / 64][kPanelBytes];  // (keys, 64 queries)
    uint64_t keys_full, full[Base::kStages], empty[Base::kStages];
  };
};

/// Masks a tile of 64 keys (rows) and kQueries queries; `key`: of this thread's row g.
template <int kQueries>
__device__ __forceinline__ void mask_keys(float (&s)[kQueries / 2], const Shape& shape,
                                          int first_query, int key) {
  const int last_key = key - lane_idx() / 4 + 15;          // of the warp
  if (last_key < shape.visible_keys(first_query)) return;  // every query sees every key
  // Key j is seen by the queries from j - (seq_k - seq_q) on, without a mask by all.
  const int shift = shape.seq_k - shape.seq_q + first_query + 2 * (lane_idx() % 4);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = key + 8 * r;
    const int first = row >= shape.seq_k ? kQueries : shape.causal ? row - shift : 0;
#pragma unroll
    for (int i = 0; i < kQueries / 2; ++i) {
      if (row_of(i) == r && key_of(i) < first) s[i] = kMinusInfinity;
    }
  }
}

/// p of a tile of 64 keys (rows) and kQueries queries, in place of s.
template <int kQueries, class Stats>
__device__ __forceinline__ void weights_by_key(float (&s)[kQueries / 2], const Stats& stats,
                                               const Shape& shape, int first_query, int key) {
  mask_keys<kQueries>(s, shape, first_query, key);
#pragma unroll
  for (int j = 0; j < kQueries / 8; ++j) {
    const auto lse = load_vector<floatx2>(stats.lse + 8 * j + 2 * (lane_idx() % 4));  // [stat]
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[4 * j + i] = ex2_approx_ftz(s[4 * j + i] * shape.scale_log2 - lse[i % 2]);
    }
  }
}

/// ds in place of dp.
template <int kQueries, class Stats>
__device__ __forceinline__ void gradients_by_key(float (&dp)[kQueries / 2],
                                                 const float (&p)[kQueries / 2],
                                                 const Stats& stats) {
#pragma unroll
  for (int j = 0; j < kQueries / 8; ++j) {
    const auto delta = load_vector<floatx2>(stats.delta + 8 * j + 2 * (lane_idx() % 4));  // [stat]
#pragma unroll
    for (int i = 0; i < 4; ++i) dp[4 * j + i] = p[4 * j + i] * (dp[4 * j + i] - delta[i % 2]);
  }
}

/// Stores a warp's 16 rows of packed ds, from row `row` of the panels on, by stmatrix.
template <int kQueries, int kPanelBytes>
__device__ __forceinline__ void store_panels(unsigned char (&panels)[kQueries / 64][kPanelBytes],
                                             int row, const uint32_t (&ds)[kQueries / 16][4]) {
  const int lane = lane_idx(), at = row + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
  for (int j = 0; j < kQueries / 16; ++j) {
    const int column = j % 4 * 16 + lane / 16 * 8;
    stmatrix_x4(panels[j / 4] + swizzle_address<Swizzle::b128>(at * 128 + column * 2), ds[j]);
  }
}

/// One batch: dq = ds k for this warpgroup's part. `ds`: panels of (all keys, 64 queries), so that
/// keys, the k of the wgmma, run down the rows.
template <class C, int kPanelBytes>
__device__ __forceinline__ void start_query_part_of_panels(
    float (&dq)[QueryPart<C>::kCount], const unsigned char (&ds)[C::kQueries / 64][kPanelBytes],
    const KeyTiles<C>& keys, int consumer) {
  const uint64_t desc =
      wgmma_descriptor<Swizzle::b128>(ds[QueryPart<C>::first_row(consumer) / 64], 0, 1024);
  start_query_part<C, Major::mn>(
      dq, keys, consumer, [&](int j) { return wgmma_descriptor_advance(desc, j * 16 * 128); });
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    swapped_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
                   Shape shape, int key_tiles, float scale) {
  using Base = typename C::Base;
  constexpr int kHeadDim = C::kHeadDim, kQueries = C::kQueries;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const KeyTile own = key_tile_of(blockIdx.x, key_tiles, C::kKeys, shape.heads_kv);
  const QueryTiles tiles = query_tiles_of<kQueries>(shape, own.kv_head, own.first_key);
  if (threadIdx.x == 0) init_barriers<Base>(smem);
  __syncthreads();

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) load_all<Base>(smem, maps, stats, shape, own, tiles);
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1, warp_row = (warp - 4) * 16;  // of the block's keys
    const int key = own.first_key + warp_row + lane_idx() / 4;
    float dk_acc[kHeadDim / 2] = {}, dv_acc[kHeadDim / 2] = {};  // (64 keys, d) per warpgroup
    StageCursor<C::kStages> ring;
    mbarrier_wait(&smem.keys_full, 0);
    QueryCursor at(tiles);
    for (int n = 0; n < tiles.count; ++n, ring.advance(), at.advance(tiles)) {
      const auto& stage = smem.stages[ring.stage];
      auto& ds_panels = smem.ds[n % 2];
      const int head = at.head, first_query = at.tile * kQueries;

      // Step 1: s and p, then dp and ds: (64 keys, queries) per warpgroup.
      // [quote swapped]
      float s[kQueries / 2], dp[kQueries / 2];
      uint32_t p[kQueries / 16][4], ds[kQueries / 16][4];  // A operands of 16 queries
      mbarrier_wait(&smem.full[ring.stage], ring.phase);
      start_scores<bf16, kHeadDim, 64, kQueries>(s, smem.keys.k[consumer], stage.q);
      wait_for_batch<0>(s);
      weights_by_key<kQueries>(s, smem.stats[ring.stage], shape, first_query, key);
      pack_weights<bf16>(p, s);
      start_scores<bf16, kHeadDim, 64, kQueries>(dp, smem.keys.v[consumer], stage.d_o);
      wait_for_batch<0>(dp);
      gradients_by_key<kQueries>(dp, s, smem.stats[ring.stage]);
      pack_weights<bf16>(ds, dp);
      // [end quote]

      // Step 2: ds to shared memory; dv and dk from registers.
      store_panels<kQueries>(ds_panels, warp_row, ds);
      fence_proxy_async();
      sync_consumers();
      start_output<bf16, kHeadDim, kQueries>(dv_acc, p, stage.d_o);
      wait_for_batch<0>(dv_acc);
      start_output<bf16, kHeadDim, kQueries>(dk_acc, ds, stage.q);
      wait_for_batch<0>(dk_acc);

      // Step 3: this warpgroup's part of dq.
      float dq[QueryPart<C>::kCount];
      start_query_part_of_panels<Base>(dq, ds_panels, smem.keys, consumer);
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[ring.stage]);
      wait_for_batch<0>(dq);
      const int row = QueryPart<C>::first_row(consumer) + warp % 4 * 16;
      const int64_t stat = stats.at(own.batch, shape.heads_q, head, first_query + row);
      add_to_sums<kHeadDim>(stats.dq + stat * kHeadDim + QueryPart<C>::first_column(consumer), dq);
    }
    store_gradients(dk, dv, shape, own, tiles.first_head, warp_row, dk_acc, dv_acc, scale);
  }
}

/// A template of one parameter, as HopperLevel takes it.
template <int kDim>
struct SwappedTiles : SwappedConfig<kDim> {};

struct Swapped : HopperLevel<SwappedTiles> {
  static constexpr LevelText text{
      .name = "swapped",
      .changed = "s and dp transposed: p and ds are operands in registers",
      .expect =
          "540 TFLOP/s: 48 KB less traffic of shared memory per tile, which limits as much as the "
          "tensor cores do, and one barrier of the warpgroups instead of two",
      .cost = "lse and delta differ from column to column of a fragment: read from shared memory",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("q").bytes(query_bytes(p)), shared_stores().conflict_free(),
            shared_loads().on("stat").conflict_free(),
            at_least_previous(0.95, "the atomics of dq are the limit")};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return swapped_kernel<decltype(config)>; });
    plan.after(stream);
  }
};

}  // namespace cookbook::attention::backward
