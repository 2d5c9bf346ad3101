// SPDX-License-Identifier: MIT
// Level 7: the order of the five matrix multiplications. s and dp are in flight together, so the
// exponentials run during dp. dv is issued before the barrier for ds, which it does not need. Then
// dq and dk are issued, and dq leaves while dk is computed.
//
//     tensor cores   | s | dp ....... |            | dv | dq | dk ...... |
//     warpgroup          | exp2       | ds, stmatrix         | dq leaves |
#pragma once

#include "chapters/13_attention_backward/level_6_bulk_add.cuh"

namespace cookbook::attention::backward {

/// One query tile in this order; no multiplication is in flight before or after. `at`: its stage;
/// `ds_number`: of the two; `warp_row`: of this warp's keys, `key`: of this thread's row g;
/// `first`: of the block's tiles.
template <class C, class Smem>
__device__ __forceinline__ void add_tile_in_flight(float (&dk_acc)[C::kHeadDim / 2],
                                                   float (&dv_acc)[C::kHeadDim / 2], Smem& smem,
                                                   const KeyTiles<C>& keys, int at, int ds_number,
                                                   const Shape& shape, int first_query,
                                                   int consumer, int warp_row, int key,
                                                   bool first) {
  constexpr int kHeadDim = C::kHeadDim, kQueries = C::kQueries;
  const auto& stage = smem.stages[at];
  auto& ds_panels = smem.ds[ds_number];

  // Step 1: s and dp: (64 keys, queries) per warpgroup. p while dp is computed.
  float s[kQueries / 2], dp[kQueries / 2];
  uint32_t p[kQueries / 16][4], ds[kQueries / 16][4];  // A operands of 16 queries
  // [quote in_flight]
  start_scores<bf16, kHeadDim, 64, kQueries>(s, keys.k[consumer], stage.q);
  start_scores<bf16, kHeadDim, 64, kQueries>(dp, keys.v[consumer], stage.d_o);
  wait_for_batch<1>(s);
  weights_by_key<kQueries>(s, smem.stats[at], shape, first_query, key);
  wait_for_batch<0>(dp);
  gradients_by_key<kQueries>(dp, s, smem.stats[at]);
  pack_weights<bf16>(p, s);
  pack_weights<bf16>(ds, dp);

  // Step 2: dv at once; dq and dk when all of ds is in shared memory.
  store_panels<kQueries>(ds_panels, warp_row, ds);
  fence_proxy_async();
  start_output<bf16, kHeadDim, kQueries>(dv_acc, p, stage.d_o);
  sync_consumers();
  float dq[QueryPart<C>::kCount];
  start_query_part_of_panels<C>(dq, ds_panels, keys, consumer);
  start_output<bf16, kHeadDim, kQueries>(dk_acc, ds, stage.q);
  wait_for_batch<1>(dq);
  give_part(smem.dq[consumer], dq, consumer, first);
  wait_for_batch<0>(dk_acc);
  // [end quote]
  wgmma_fence_operand(dv_acc);
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    in_flight_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
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
      mbarrier_wait(&smem.full[ring.stage], ring.phase);
      add_tile_in_flight<Base>(dk_acc, dv_acc, smem, smem.keys, ring.stage, n % 2, shape,
                               at.tile * kQueries, consumer, warp_row, key, n == 0);
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[ring.stage]);
    }
    store_gradients(dk, dv, shape, own, tiles.first_head, warp_row, dk_acc, dv_acc, scale);
  }
}

struct InFlight : PartsLevel<BulkAddTiles> {
  static constexpr LevelText text{
      .name = "in_flight",
      .changed = "two and three matrix multiplications in flight",
      .expect =
          "670 TFLOP/s: the exponentials run during dp, and dq leaves during dk; between the two "
          "halves a warpgroup still waits",
      .cost = "s, dp, dk and dv in registers at once",
  };

  static Claims claims(const Problem& p) {
    return {tma_stores("dq_sums").bytes(4 * p.head_dim() * loaded_queries(p, true)),
            faster_than_previous(1.01)};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return in_flight_kernel<decltype(config)>; });
    convert(plan, stream);
  }
};

}  // namespace cookbook::attention::backward
