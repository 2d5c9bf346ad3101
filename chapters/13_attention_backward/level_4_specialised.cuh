// SPDX-License-Identifier: MIT
// Level 4: a producer warp loads query tiles into two stages, and two warpgroups do what level
// 3 does. Only the two of them meet at barriers, twice per tile.
#pragma once

#include "chapters/13_attention_backward/level_3_wgmma.cuh"

namespace cookbook::attention::backward {

template <int kDim, int kQueriesPerTile = 64, int kStageCount = 2>
struct StagedConfig : HopperConfig<kDim, kQueriesPerTile> {
  using Base = HopperConfig<kDim, kQueriesPerTile>;
  static constexpr int kThreads = (1 + Base::kConsumers) * kWarpgroup;  // + the producer
  static constexpr int kStages = kStageCount;
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
  // setmaxnreg moves the registers that the block was launched with: 168 per thread. More is a
  // hang.
  static_assert(kProducerRegisters + Base::kConsumers * kConsumerRegisters <=
                (1 + Base::kConsumers) * (65536 / kThreads / 8 * 8));
};

template <int kDim>
struct SpecialisedConfig : StagedConfig<kDim> {
  using Base = StagedConfig<kDim>;
  struct Smem {
    KeyTiles<Base> keys;
    QueryStage<Base> stages[Base::kStages];
    TileStats<Base> stats[Base::kStages];
    alignas(1024) unsigned char p[Base::kConsumers][64 * 64 * 2];  // (queries, 64 keys)
    alignas(1024) unsigned char ds[Base::kConsumers][64 * 64 * 2];
    uint64_t keys_full, full[Base::kStages], empty[Base::kStages];
  };
};

/// A barrier of the two warpgroups that multiply.
__device__ __forceinline__ void sync_consumers() { named_barrier_sync(1, 2 * kWarpgroup); }

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    specialised_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
                       Shape shape, int key_tiles, float scale) {
  using Base = typename C::Base;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const KeyTile own = key_tile_of(blockIdx.x, key_tiles, C::kKeys, shape.heads_kv);
  const QueryTiles tiles = query_tiles_of<C::kQueries>(shape, own.kv_head, own.first_key);
  if (threadIdx.x == 0) init_barriers<Base>(smem);
  __syncthreads();

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) load_all<Base>(smem, maps, stats, shape, own, tiles);
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1;
    float dk_acc[C::kHeadDim / 2] = {}, dv_acc[C::kHeadDim / 2] = {};  // (64 keys, d)
    StageCursor<C::kStages> ring;
    mbarrier_wait(&smem.keys_full, 0);
    QueryCursor at(tiles);
    for (int n = 0; n < tiles.count; ++n, ring.advance(), at.advance(tiles)) {
      const int head = at.head, first_query = at.tile * C::kQueries;
      const int64_t stat = stats.at(own.batch, shape.heads_q, head, first_query);
      // [quote specialised]
      mbarrier_wait(&smem.full[ring.stage], ring.phase);
      add_tile<Base>(dk_acc, dv_acc, smem, smem.stages[ring.stage], smem.stats[ring.stage],
                     stats.dq + stat * C::kHeadDim, shape, consumer, first_query, own.first_key,
                     [] { sync_consumers(); });
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[ring.stage]);
      // [end quote]
    }
    store_gradients(dk, dv, shape, own, tiles.first_head, (warp - 4) * 16, dk_acc, dv_acc, scale);
  }
}

struct Specialised : HopperLevel<SpecialisedConfig> {
  static constexpr LevelText text{
      .name = "specialised",
      .changed = "a producer warp and two stages of queries",
      .expect = "450 TFLOP/s: no load is waited for; the order of the steps is as before",
      .cost = "128 more threads; 32 KB more of shared memory",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("q").bytes(query_bytes(p)), tma_loads("do").bytes(query_bytes(p)),
            faster_than_previous(1.1)};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return specialised_kernel<decltype(config)>; });
    plan.after(stream);
  }
};

}  // namespace cookbook::attention::backward
