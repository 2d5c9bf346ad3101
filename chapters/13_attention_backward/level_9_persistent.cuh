// SPDX-License-Identifier: MIT
// Level 9: one block per SM, which takes key tiles from a counter, the longest first. The next
// tile's keys and queries are loaded while this one's dk and dv are stored, and no block waits to
// be launched. The launches before and after it overlap with its beginning and end.
//
// Tiles are tuned: at head dimension 64, where dk and dv take half as many registers, 128 queries
// in the order of level 7, and two key tiles. There, dk from shared memory (level 8) would cost
// more than it hides.
#pragma once

#include "chapters/10_flash_attention/schedule.cuh"
#include "chapters/13_attention_backward/level_8_delayed.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct PersistentTiles : BulkAddConfig<kDim, kDim == 64 ? 128 : 64, kDim == 64 ? 2 : 3> {
  using Parent = BulkAddConfig<kDim, kDim == 64 ? 128 : 64, kDim == 64 ? 2 : 3>;
  using Base = typename Parent::Base;
  static constexpr bool kDelayed = kDim == 128;  // the order: of level 8 or 7
  static constexpr int kKeyStages = kDim == 64 ? 2 : 1;
  struct Smem {
    KeyTiles<Base> keys[kKeyStages];
    QueryStage<Base> stages[Base::kStages];
    alignas(1024) unsigned char ds[2][Base::kQueries / 64][Parent::kPanelBytes];
    alignas(128) float dq[Base::kConsumers][QueryPart<Base>::kBytes / 4];
    TileStats<Base> stats[Base::kStages];
    uint64_t keys_full[kKeyStages], keys_empty[kKeyStages];
    uint64_t full[Base::kStages], empty[Base::kStages];
    KeyTile own[kKeyStages];  // from the producer to the others; first_key < 0: no more
  };
  static_assert(sizeof(Smem) <= 227 * 1024);
};

/// The producer's whole work. Called by one thread.
template <class C, class Smem>
__device__ __forceinline__ void load_key_tiles(Smem& smem, const Maps& maps,
                                               const QueryStats& stats, const Shape& shape,
                                               const Schedule& schedule, TileCounters* counters) {
  constexpr int kKeyStages = sizeof smem.keys / sizeof smem.keys[0];
  StageCursor<C::kStages> ring;
  StageCursor<kKeyStages> key_ring;
  int next = blockIdx.x;
  for (;; key_ring.advance()) {
    const int tile = next, keys = key_ring.stage;
    if (tile >= schedule.tiles) {
      mbarrier_wait(&smem.keys_empty[keys], key_ring.phase ^ 1);
      smem.own[keys] = {-1, 0, 0};
      mbarrier_arrive(&smem.keys_full[keys]);
      break;
    }
    const auto [first_key, kv_head, batch] = schedule.at(tile, C::kKeys, shape.heads_kv);
    const KeyTile own{first_key, kv_head, batch};
    const QueryTiles tiles = query_tiles_of<C::kQueries>(shape, own.kv_head, own.first_key);
    QueryCursor at(tiles);
    // With one buffer for keys, they come behind the first queries, which need not wait for it.
    const int keys_at = kKeyStages == 1 && tiles.count > 0 ? 1 : 0;
    for (int n = 0; n <= tiles.count; ++n) {
      // [quote persistent]
      if (n == keys_at) {
        mbarrier_wait(&smem.keys_empty[keys], key_ring.phase ^ 1);
        smem.own[keys] = own;
        load_keys<C>(smem.keys[keys], &smem.keys_full[keys], maps, own);
      }
      // [end quote]
      if (n == tiles.count) break;
      const int head = at.head, first_query = at.tile * C::kQueries;
      mbarrier_wait(&smem.empty[ring.stage], ring.phase ^ 1);
      load_queries<C>(smem.stages[ring.stage], smem.stats[ring.stage], &smem.full[ring.stage], maps,
                      stats, stats.at(own.batch, shape.heads_q, head, first_query), head,
                      first_query, own.batch);
      ring.advance();
      at.advance(tiles);
    }
    // Not before: a block that is busy with a long tile must not hold another one.
    next = static_cast<int>(gridDim.x) + atomicAdd(&counters->next, 1);
  }
  reset_counters(counters);
}

template <class C, class Order>
__global__ void __launch_bounds__(C::kThreads, 1)
    persistent_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
                      Shape shape, Schedule schedule, TileCounters* counters, Order order,
                      float scale) {
  using Base = typename C::Base;
  constexpr int kHeadDim = C::kHeadDim, kQueries = C::kQueries;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  if (threadIdx.x == 0) {
    for (int keys = 0; keys < C::kKeyStages; ++keys) {
      mbarrier_init(&smem.keys_full[keys], 1);
      mbarrier_init(&smem.keys_empty[keys], 4 * C::kConsumers + 1);  // readers: and the adding warp
    }
    init_stage_barriers<Base>(smem);
  }
  __syncthreads();
  allow_next_launch();
  wait_for_previous_launch();  // for what delta_kernel writes

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0) {
      if (elect_one()) load_key_tiles<Base>(smem, maps, stats, shape, schedule, counters);
    } else if (warp == 1) {
      bool first = true;
      for (StageCursor<C::kKeyStages> keys;; keys.advance()) {
        mbarrier_wait(&smem.keys_full[keys.stage], keys.phase);
        const KeyTile own = smem.own[keys.stage];
        if (own.first_key < 0) break;
        __syncwarp();
        if (lane_idx() == 0) mbarrier_arrive(&smem.keys_empty[keys.stage]);
        const QueryTiles tiles = query_tiles_of<kQueries>(shape, own.kv_head, own.first_key);
        add_parts<Base>(smem, stats, shape, own, tiles, first, order.of(own));
        first = first && tiles.count == 0;
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1, warp_row = (warp - 4) * 16;  // of the block's keys
    StageCursor<C::kStages> ring;
    int step = 0;  // ds[step % 2] is written next; the first tile's step is 0, or 1 behind a clear
    // A count instead of a StageCursor: it stays in a uniform register.
    for (int number = 0;; ++number) {
      const int keys = number % C::kKeyStages;
      mbarrier_wait(&smem.keys_full[keys], number / C::kKeyStages % 2);
      // Broadcast, so that the compiler keeps them in uniform registers.
      const auto uniform = [](int value) { return __shfl_sync(kFullWarp, value, 0); };
      const int first_key = uniform(smem.own[keys].first_key);
      if (first_key < 0) break;
      const QueryTiles tiles = query_tiles_of<kQueries>(shape, 0, first_key);
      const int key = first_key + warp_row + lane_idx() / 4;
      float dk_acc[kHeadDim / 2] = {}, dv_acc[kHeadDim / 2] = {};  // (64 keys, d) per warpgroup
      QueryCursor at(tiles);
      int before = ring.stage;
      if (C::kDelayed && tiles.count > 0) clear_panels<Base>(smem, step++ % 2);
      for (int n = 0; n < tiles.count; ++n, ring.advance(), at.advance(tiles)) {
        mbarrier_wait(&smem.full[ring.stage], ring.phase);
        const int first_query = at.tile * kQueries;
        if constexpr (C::kDelayed) {
          add_tile_delayed<C>(dk_acc, dv_acc, smem, smem.keys[keys], ring.stage, before, step % 2,
                              shape, first_query, consumer, warp_row, key, n > 0, step == 1);
          before = ring.stage;
        } else {
          add_tile_in_flight<Base>(dk_acc, dv_acc, smem, smem.keys[keys], ring.stage, step % 2,
                                   shape, first_query, consumer, warp_row, key, step == 0);
          if (lane_idx() == 0) mbarrier_arrive(&smem.empty[ring.stage]);
        }
        ++step;
      }
      const KeyTile own =
          smem.own[keys];  // only now, or addresses of dk and dv live during the loop
      __syncwarp();
      if (lane_idx() == 0) mbarrier_arrive(&smem.keys_empty[keys]);
      __syncwarp();
      if (C::kDelayed && tiles.count > 0) {
        start_from_panels<C>(dk_acc, smem.ds[1 - step % 2], consumer, smem.stages[before].q);
        wait_for_batch<0>(dk_acc);
        if (lane_idx() == 0) mbarrier_arrive(&smem.empty[before]);
      }
      store_gradients(dk, dv, shape, own, own.kv_head * (shape.heads_q / shape.heads_kv), warp_row,
                      dk_acc, dv_acc, scale);
    }
  }
}

struct PersistentPlan : HopperPlan {
  Schedule schedule;
  int blocks;
  DeviceMemory counters;

  /// `reversed`: a head's last key tiles first.
  PersistentPlan(const Problem& p, const Buffers& at, int queries, bool reversed = false)
      : HopperPlan(p, at, queries),
        schedule(schedule_of(p, reversed)),
        blocks(std::min(device_info().sm_count, schedule.tiles)),
        counters(sizeof(TileCounters), "counters") {
    counters.fill(0);
  }

 private:
  /// Without a mask all tiles take equally long: one head after the other. With a mask: the long
  /// tiles of as many heads as fit into half of L2 with q, do and the sums of dq.
  static Schedule schedule_of(const Problem& p, bool reversed) {
    const Shape& s = p.shape();
    const int key_tiles = ceil_div(s.seq_k, 128), heads = s.batch * s.heads_kv;
    const size_t bytes = size_t{8} * p.head_dim() * s.seq_q * s.heads_q / std::max(1, s.heads_kv);
    const int fit =
        s.causal ? static_cast<int>(device_info().l2_bytes / 2 / std::max(size_t{1}, bytes)) : 1;
    const int groups = std::max(1, heads / std::max(1, fit));
    return {key_tiles * heads, key_tiles, heads, std::max(1, ceil_div(heads, groups)), reversed};
  }
};

struct Persistent : PartsLevel<PersistentTiles> {
  static constexpr LevelText text{
      .name = "persistent",
      .changed = "one block per SM; a counter assigns key tiles, longest first; tuned tiles",
      .expect =
          "1.15x at 8 x 2,048, where a block computes 17 query tiles and starting and ending it "
          "takes as long as four; 1.01x at 8,192",
      .cost = "8 bytes of counters; the raster order differs from run to run",
  };

  using Plan = PersistentPlan;
  static Plan prepare(const Problem& p, const Buffers& at) { return {p, at, queries_per_tile(p)}; }
  static Claims claims(const Problem& p) {
    return {tma_stores("dq_sums").bytes(4 * p.head_dim() * loaded_queries(p, true)),
            at_least_previous(0.98, "a long sequence has little to hide; short ones gain most")};
  }
  template <class Order>
  static void run_in_order(const Plan& plan, Stream stream, const Order& order) {
    plan.before(stream, true);
    with_head_dim(plan.problem, [&](auto d) {
      using C = PersistentTiles<decltype(d)::value>;
      LaunchConfig config{static_cast<unsigned>(plan.blocks), C::kThreads,
                          sizeof(typename C::Smem)};
      config.dependent = true;
      launch(persistent_kernel<C, Order>, config, stream, plan.maps, plan.buffers.dk,
             plan.buffers.dv, plan.stats(), plan.problem.shape(), plan.schedule,
             plan.counters.as<TileCounters>(), order, gradient_scale(plan.problem));
    });
    convert(plan, stream, true);
  }
  static void run(const Plan& plan, Stream stream) { run_in_order(plan, stream, AnyOrder{}); }
};

}  // namespace cookbook::attention::backward
