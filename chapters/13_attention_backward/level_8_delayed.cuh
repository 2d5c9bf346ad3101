// SPDX-License-Identifier: MIT
// Level 8: overlap across tiles. dk of a tile is computed together with s and dp of the next one,
// so that the tensor cores have work during the exponentials and while ds is made. It takes a third
// stage, as q of a tile is in use until the middle of the next.
//
//     tensor cores   | s | dp .. | dk of the tile before ..... |    | dq | dv ......... |
//     warpgroup          | exp2  | ds, stmatrix | barrier      |         | dq leaves    |
#pragma once

#include "chapters/13_attention_backward/level_7_in_flight.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct DelayedConfig : BulkAddConfig<kDim, 64, 3> {
  static_assert(sizeof(typename BulkAddConfig<kDim, 64, 3>::Smem) <= 227 * 1024);
};

/// One batch: dk += ds q with ds in shared memory, where it is for dq anyway: in registers it would
/// have to stay until the next tile's own ds is there.
template <class C>
__device__ __forceinline__ void start_from_panels(
    float (&dk)[C::kHeadDim / 2], const unsigned char (&ds)[C::kQueries / 64][C::kPanelBytes],
    int consumer, const unsigned char* q) {
  const uint64_t ds_desc = wgmma_descriptor<Swizzle::b128>(ds[0] + consumer * 64 * 128, 0, 1024);
  const uint64_t q_desc = wgmma_descriptor<Swizzle::b128>(q, C::kQueries * 128, 1024);
  wgmma_fence_operand(dk);
  wgmma_fence();
#pragma unroll
  for (int j = 0; j < C::kQueries / 16; ++j) {
    wgmma_m64k16<C::kHeadDim, bf16, Major::k, Major::mn>(
        dk, wgmma_descriptor_advance(ds_desc, j / 4 * C::kPanelBytes + j % 4 * 32),
        wgmma_descriptor_advance(q_desc, j * 16 * 128), true);
  }
  wgmma_commit();
}

/// One query tile in this order; no multiplication is in flight before or after. `before`: the
/// stage of the tile before, whose dk is computed here; `release`: it is not used any more then.
/// The rest as in add_tile_in_flight.
template <class C, class Smem>
__device__ __forceinline__ void add_tile_delayed(float (&dk_acc)[C::kHeadDim / 2],
                                                 float (&dv_acc)[C::kHeadDim / 2], Smem& smem,
                                                 const KeyTiles<typename C::Base>& keys, int at,
                                                 int before, int ds_number, const Shape& shape,
                                                 int first_query, int consumer, int warp_row,
                                                 int key, bool release, bool first) {
  constexpr int kHeadDim = C::kHeadDim, kQueries = C::kQueries;
  const auto& stage = smem.stages[at];
  auto& ds_panels = smem.ds[ds_number];

  // Step 1: s and dp: (64 keys, queries) per warpgroup; and dk of the tile before.
  float s[kQueries / 2], dp[kQueries / 2];
  uint32_t p[kQueries / 16][4], ds[kQueries / 16][4];  // A operands of 16 queries
  // [quote delayed]
  start_scores<bf16, kHeadDim, 64, kQueries>(s, keys.k[consumer], stage.q);
  start_scores<bf16, kHeadDim, 64, kQueries>(dp, keys.v[consumer], stage.d_o);
  start_from_panels<C>(dk_acc, smem.ds[1 - ds_number], consumer, smem.stages[before].q);
  wait_for_batch<2>(s);
  weights_by_key<kQueries>(s, smem.stats[at], shape, first_query, key);
  wait_for_batch<1>(dp);
  gradients_by_key<kQueries>(dp, s, smem.stats[at]);
  pack_weights<bf16>(p, s);
  pack_weights<bf16>(ds, dp);
  store_panels<kQueries>(ds_panels, warp_row, ds);
  // [end quote]
  fence_proxy_async();
  sync_consumers();
  wait_for_batch<0>(dk_acc);

  // Step 2: dq, and dv while dq leaves.
  float dq[QueryPart<C>::kCount];
  start_query_part_of_panels<typename C::Base>(dq, ds_panels, keys, consumer);
  start_output<bf16, kHeadDim, kQueries>(dv_acc, p, stage.d_o);
  if (release && lane_idx() == 0) mbarrier_arrive(&smem.empty[before]);
  wait_for_batch<1>(dq);
  give_part(smem.dq[consumer], dq, consumer, first);
  wait_for_batch<0>(dv_acc);
}

/// Clears this warpgroup's rows of a ds, for the first tile of a key tile: it has no tile before
/// it, and ptxas serialises wgmma where one of a batch is behind a branch. It adds zeros times its
/// own q.
template <class C, class Smem>
__device__ __forceinline__ void clear_panels(Smem& smem, int ds_number) {
  const uint32_t zeros[C::kQueries / 16][4] = {};
  store_panels<C::kQueries>(smem.ds[ds_number], (warp_idx() - 4) * 16, zeros);
  fence_proxy_async();
  sync_consumers();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    delayed_kernel(const __grid_constant__ Maps maps, bf16* dk, bf16* dv, QueryStats stats,
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
    QueryCursor at(tiles);
    clear_panels<Base>(smem, 1);
    int before = 0;  // the stage of the tile before
    mbarrier_wait(&smem.keys_full, 0);
    for (int n = 0; n < tiles.count; ++n, ring.advance(), at.advance(tiles)) {
      mbarrier_wait(&smem.full[ring.stage], ring.phase);
      add_tile_delayed<C>(dk_acc, dv_acc, smem, smem.keys, ring.stage, before, n % 2, shape,
                          at.tile * kQueries, consumer, warp_row, key, n > 0, n == 0);
      before = ring.stage;
    }
    if (tiles.count > 0) {
      start_from_panels<C>(dk_acc, smem.ds[1 - tiles.count % 2], consumer, smem.stages[before].q);
      wait_for_batch<0>(dk_acc);
    }
    store_gradients(dk, dv, shape, own, tiles.first_head, warp_row, dk_acc, dv_acc, scale);
  }
}

struct Delayed : PartsLevel<DelayedConfig> {
  static constexpr LevelText text{
      .name = "delayed",
      .changed = "dk of a tile during s and dp of the next; three stages",
      .expect =
          "710 TFLOP/s: the tensor cores have dk to compute during the exponentials and until ds "
          "is in shared memory",
      .cost = "dk reads ds from shared memory; all 227 KB of it are in use",
  };

  static Claims claims(const Problem& p) {
    return {
        tma_stores("dq_sums").bytes(4 * p.head_dim() * loaded_queries(p, true)),
        at_least_previous(0.98, "1.00 to 1.02 from run to run: both levels are near the limit")};
  }
  static void run(const Plan& plan, Stream stream) {
    plan.before(stream, true);
    launch_tiles(plan, stream, [](auto config) { return delayed_kernel<decltype(config)>; });
    convert(plan, stream);
  }
};

}  // namespace cookbook::attention::backward
