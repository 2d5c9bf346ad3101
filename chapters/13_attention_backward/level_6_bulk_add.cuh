// SPDX-License-Identifier: MIT
// Level 6: dq leaves by bulk reduction. A warpgroup writes its part of a tile's dq to shared
// memory, in the order of its accumulators, and a warp of the producer's warpgroup adds the whole
// part to the sums with one instruction (cp.reduce.async.bulk). The sums have the same order, so
// nothing is permuted on the way; the kernel that rounds them at the end restores the rows.
#pragma once

#include "chapters/13_attention_backward/level_5_swapped.cuh"
#include "common/device/bulk_add.cuh"

namespace cookbook::attention::backward {

template <int kDim, int kQueriesPerTile = 64, int kStageCount = 2>
struct BulkAddConfig : SwappedConfig<kDim, kQueriesPerTile, kStageCount> {
  using Swapped = SwappedConfig<kDim, kQueriesPerTile, kStageCount>;
  using Base = typename Swapped::Base;
  struct Smem : Swapped::Smem {
    alignas(128) float dq[Base::kConsumers][QueryPart<Base>::kBytes / 4];
  };
};

/// Between a warpgroup that fills its part of dq and the warp that adds it: named barriers of both.
struct PartBarriers {
  static constexpr int kThreads = kWarpgroup + 32;
  static __device__ constexpr int full(int consumer) { return 2 + consumer; }
  static __device__ constexpr int empty(int consumer) { return 4 + consumer; }
};

/// The order in which blocks add to the sums of a query tile: any. of(): for one key tile.
struct AnyOrder {
  __device__ __forceinline__ AnyOrder of(const KeyTile&) const { return {}; }
  __device__ __forceinline__ void wait(int, int) const {}
  __device__ __forceinline__ void done(int, int) const {}
};

/// The adding warp's work for one key tile. `first`: of the block's, when no part waits to be
/// emptied. order.wait(head, tile) is called before a tile's parts are added, done() after.
template <class C, class Order = AnyOrder, class Smem>
__device__ __forceinline__ void add_parts(Smem& smem, const QueryStats& stats, const Shape& shape,
                                          const KeyTile& own, const QueryTiles& tiles,
                                          bool first = true, const Order& order = {}) {
  constexpr int kFloats = QueryPart<C>::kBytes / 4;
  float* sums = stats.dq + stats.at(own.batch, shape.heads_q, tiles.first_head,
                                    tiles.first_tile * C::kQueries) *
                               C::kHeadDim;
  const int skipped = (stats.padded - tiles.per_head * C::kQueries) * C::kHeadDim;  // between heads
  int in_head = 0, head = tiles.first_head;
  const bool leader = lane_idx() == 0;
  for (int n = 0; n < tiles.count; ++n) {
    // [quote bulk_add]
    // Every arrival needs a wait, so there is none after the last tile.
    if (n > 0 || !first) {
      named_barrier_arrive(PartBarriers::empty(0), PartBarriers::kThreads);
      named_barrier_arrive(PartBarriers::empty(1), PartBarriers::kThreads);
    }
    order.wait(head, tiles.first_tile + in_head);
#pragma unroll
    for (int consumer = 0; consumer < C::kConsumers; ++consumer) {
      named_barrier_sync(PartBarriers::full(consumer), PartBarriers::kThreads);
      if (leader) {
        bulk_store_add(sums + consumer * kFloats, smem.dq[consumer], kFloats);
        tma_store_commit();
        tma_store_wait_read<0>();
      }
      __syncwarp();
    }
    // [end quote]
    order.done(head, tiles.first_tile + in_head);
    sums += C::kQueries * C::kHeadDim;
    if (++in_head == tiles.per_head) {
      in_head = 0;
      ++head;
      sums += skipped;
    }
  }
  if (leader) tma_store_wait<0>();
}

/// A warpgroup's part of dq to shared memory, then to the adding warp. `first`: of the block's
/// tiles, when nothing needs to be waited for.
template <int kCount>
__device__ __forceinline__ void give_part(float* part, const float (&dq)[kCount], int consumer,
                                          bool first) {
  if (!first) named_barrier_sync(PartBarriers::empty(consumer), PartBarriers::kThreads);
  const int thread = threadIdx.x % kWarpgroup;
#pragma unroll
  for (int j = 0; j < kCount / 4; ++j) {
    const floatx4 four{dq[4 * j], dq[4 * j + 1], dq[4 * j + 2], dq[4 * j + 3]};
    store_vector(part + (j * kWarpgroup + thread) * 4, four);  // [part]
  }
  fence_proxy_async();
  named_barrier_arrive(PartBarriers::full(consumer), PartBarriers::kThreads);
}

/// dq = scale * sums, where the sums have the order of give_part. A warp has 16 queries and 32
/// columns; it reads 512 bytes at a time and writes 64 per row.
template <class C>
__global__ void __launch_bounds__(kRowThreads)
    convert_parts_kernel(bf16* dq, QueryStats stats, Shape shape, float scale) {
  constexpr int kColumnGroups = C::kHeadDim / 32;
  constexpr int kFloats = QueryPart<C>::kBytes / 4;
  wait_for_previous_launch();  // for level 9
  const int warps_per_head = stats.padded / 16 * kColumnGroups;
  const int64_t index = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + warp_idx();
  if (index >= static_cast<int64_t>(shape.batch) * shape.heads_q * warps_per_head) return;
  const int head_index = static_cast<int>(index / warps_per_head);
  const int within = static_cast<int>(index % warps_per_head);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  const int row = within / kColumnGroups * 16, column = within % kColumnGroups * 32;
  if (row >= shape.seq_q) return;

  // Which part, and where in it: the inverse of QueryPart and give_part.
  const int in_tile = row % C::kQueries;
  const int part = QueryPart<C>::kByRows ? in_tile / 64 : column / QueryPart<C>::kColumns;
  const int first_group = (column - QueryPart<C>::first_column(part)) / 8;
  const int thread = in_tile % 64 * 2 + lane_idx();
  const float* from = stats.dq + stats.at(batch, shape.heads_q, head, row - in_tile) * C::kHeadDim +
                      part * kFloats + (first_group * kWarpgroup + thread) * 4;
  floatx4 sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = load_vector<floatx4>(from + i * kWarpgroup * 4);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = pack_pair<bf16>(sums[i][2 * r] * scale, sums[i][2 * r + 1] * scale);
    }
    transpose_quad(words, lane_idx());
    const int query = row + lane_idx() / 4 + 8 * r;
    if (query >= shape.seq_q) continue;
    store_vector(dq + shape.q_row(batch, query, head) * shape.pitch + column + lane_idx() % 4 * 8,
                 uint4{words[0], words[1], words[2], words[3]});
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    bulk_add_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
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
    if (warp == 0) {
      if (elect_one()) load_all<Base>(smem, maps, stats, shape, own, tiles);
    } else if (warp == 1) {
      add_parts<Base>(smem, stats, shape, own, tiles);
    }
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
      const int first_query = at.tile * kQueries;

      // Step 1: s and p, then dp and ds: (64 keys, queries) per warpgroup.
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
      give_part(smem.dq[consumer], dq, consumer, n == 0);
    }
    store_gradients(dk, dv, shape, own, tiles.first_head, warp_row, dk_acc, dv_acc, scale);
  }
}

/// Host side of levels whose sums of dq have the order of give_part.
template <template <int> class ConfigOf>
struct PartsLevel : HopperLevel<ConfigOf> {
  /// `dependent`: as in LaunchConfig.
  static void convert(const HopperPlan& plan, Stream stream, bool dependent = false) {
    with_head_dim(plan.problem, [&](auto d) {
      using C = typename ConfigOf<decltype(d)::value>::Base;
      const auto warps =
          static_cast<int64_t>(PlanBase::rows(plan.problem)) / 16 * (C::kHeadDim / 32);
      LaunchConfig config{PlanBase::row_blocks(warps), kRowThreads};
      config.dependent = dependent;
      launch(convert_parts_kernel<C>, config, stream, plan.buffers.dq, plan.stats(),
             plan.problem.shape(), gradient_scale(plan.problem));
    });
  }
};

/// A template of one parameter, as HopperLevel takes it.
template <int kDim>
struct BulkAddTiles : BulkAddConfig<kDim> {};

struct BulkAdd : PartsLevel<BulkAddTiles> {
  static constexpr LevelText text{
      .name = "bulk_add",
      .changed = "dq: one bulk reduction per 16 KB, by a warp of its own",
      .expect =
          "620 TFLOP/s: 32 atomics per thread and tile become 8 stores to shared memory, and the "
          "additions run while the tensor cores do",
      .cost = "32 KB of shared memory for dq; the sums' order is that of the accumulators",
  };

  static Claims claims(const Problem& p) {
    return {tma_stores("dq_sums").bytes(4 * p.head_dim() * loaded_queries(p, true)),
            shared_stores().on("part").conflict_free(), faster_than_previous(1.6)};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return bulk_add_kernel<decltype(config)>; });
    convert(plan, stream);
  }
};

}  // namespace cookbook::attention::backward
