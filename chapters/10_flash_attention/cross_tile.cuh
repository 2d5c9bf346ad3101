// SPDX-License-Identifier: MIT
// The pipeline across query tiles (levels 9 to 12): shared memory, barriers, the producer, and what
// a consumer does between its GEMMs. The first keys of the next query tile are loaded before the
// last values of the current one. Level 12 has another Config for the same kernel, with a producer
// and a consumer that compute a part of a query tile's keys; `More` are their parameters.
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"
#include "chapters/10_flash_attention/schedule.cuh"

namespace cookbook::attention {

/// A query tile, from the producer to the consumers.
struct QueuedTile {
  int first_query, head, batch;
  int key_tiles;  // -1: no more query tiles
};

template <class C>
struct TileConsumer;

template <class PersistentC>
struct CrossTileConfig : PersistentC {
  using C = PersistentC;
  using Consumer = TileConsumer<CrossTileConfig>;
  static constexpr int kQueued = 3;  // query tiles announced: finished, computed, next
  struct Smem {
    alignas(1024) unsigned char q[C::kBlockM * C::kHeadDim * 2];
    alignas(1024) unsigned char k[C::kStages][C::kTileBytes];
    alignas(1024) unsigned char v[C::kStages][C::kTileBytes];
    uint64_t q_full[C::kConsumers], q_empty[C::kConsumers];
    uint64_t k_full[C::kStages], k_empty[C::kStages], v_full[C::kStages], v_empty[C::kStages];
    uint64_t tile_full[kQueued], tile_empty[kQueued];
    alignas(16) QueuedTile tile[kQueued];
  };
};

/// Initialises the barriers. One thread calls; a barrier of the block must follow.
template <class C>
__device__ __forceinline__ void init_cross_tile(typename C::Smem& smem) {
  for (int c = 0; c < C::kConsumers; ++c) {
    mbarrier_init(&smem.q_full[c], 1);
    mbarrier_init(&smem.q_empty[c], 4);  // readers: the consumer's warps
  }
  for (int entry = 0; entry < C::kQueued; ++entry) {
    mbarrier_init(&smem.tile_full[entry], 1);
    mbarrier_init(&smem.tile_empty[entry], 4 * C::kConsumers);
  }
  init_stage_barriers<C::kStages>(smem, 4 * C::kConsumers);
}

/// Loads the queries of a tile, each warpgroup's as soon as it has read its previous ones.
template <class C>
__device__ __forceinline__ void load_queries_apart(typename C::Smem& smem, const TensorMap* map,
                                                   StageCursor<1>& ring, const QueuedTile& tile) {
  for (int c = 0; c < C::kConsumers; ++c) {
    mbarrier_wait(&smem.q_empty[c], ring.phase ^ 1);
    mbarrier_arrive_expect_tx(&smem.q_full[c], 64 * C::kHeadDim * 2);
    load_tile<C::kHeadDim, 64, C::kBlockM>(smem.q + c * 64 * 128, map, &smem.q_full[c], tile.head,
                                           tile.first_query + c * 64, tile.batch);
  }
  ring.advance();
}

/// The producer: one thread announces the block's query tiles and loads what they need.
template <class C>
__device__ __forceinline__ void produce_tiles(typename C::Smem& smem, const TensorMap* q_map,
                                              const TensorMap* k_map, const TensorMap* v_map,
                                              const Shape& shape, const Schedule& schedule,
                                              TileCounters* counters) {
  constexpr int kBlockM = C::kBlockM;
  StageCursor<C::kStages> k_ring, v_ring;
  StageCursor<C::kQueued> entry;
  StageCursor<1> q_ring;
  int v_head = -1, v_batch = 0;  // the query tile whose last values are not loaded yet
  const auto load_last_values = [&] {
    if (v_head < 0) return;
    load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, v_head, 0, v_batch);
    v_head = -1;
  };
  for (int next = blockIdx.x;;) {
    // Step 1: tell the consumers which tile comes next. Before one without keys they finish the
    // previous tile, for which they need its last values.
    QueuedTile tile{0, 0, 0, -1};
    if (next < schedule.tiles) {
      const auto [first_query, head, batch] = schedule.at(next, kBlockM, shape.heads_q);
      tile = {first_query, head, batch, key_tiles<kBlockM, C::kBlockN>(shape, first_query)};
    }
    if (tile.key_tiles <= 0) load_last_values();
    mbarrier_wait(&smem.tile_empty[entry.stage], entry.phase ^ 1);
    smem.tile[entry.stage] = tile;
    mbarrier_arrive(&smem.tile_full[entry.stage]);
    entry.advance();
    if (tile.key_tiles < 0) break;
    // Step 2: load its queries, keys and values, in the order in which the consumers use them.
    // The last values follow the next tile's first keys.
    if (tile.key_tiles > 0) {
      const int kv_head = shape.kv_head(tile.head);
      const auto load_k = [&](int n) {
        load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, k_map, kv_head, n, tile.batch);
      };
      load_k(tile.key_tiles - 1);
      load_last_values();
      load_queries_apart<C>(smem, q_map, q_ring, tile);
      for (int n = tile.key_tiles - 2; n >= 0; --n) {
        load_k(n);
        load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, kv_head, n + 1, tile.batch);
      }
      v_head = kv_head, v_batch = tile.batch;
    }
    next = static_cast<int>(gridDim.x) + atomicAdd(&counters->next, 1);
  }
  reset_counters(counters);
}

/// What a thread of a consumer warpgroup knows: its place in each ring. And the steps between the
/// GEMMs, which all threads of the warpgroup call. What is known about a query tile stays in shared
/// memory, because registers are scarce.
template <class C>
struct TileConsumer {
  using Entry = StageCursor<C::kQueued>;
  typename C::Smem& smem;
  int warp, index, lane;  // warp of the block; the consumer's index, 0 for warps 4 to 7
  StageCursor<C::kStages> k_ring, v_ring;
  Entry entry;  // of the query tile whose output accumulates
  StageCursor<1> q_ring;

  __device__ __forceinline__ TileConsumer(typename C::Smem& smem, int warp)
      : smem(smem), warp(warp), index(warp / 4 - 1), lane(lane_idx()) {}

  __device__ __forceinline__ void release(uint64_t* empty) const {
    if (lane == 0) mbarrier_arrive(empty);
  }
  /// Waits until the query tile is announced. Returns its number of key tiles; -1: no more tiles.
  __device__ __forceinline__ int wait_for_tile(const Entry& at) const {
    mbarrier_wait(&smem.tile_full[at.stage], at.phase);
    return __shfl_sync(kFullWarp, smem.tile[at.stage].key_tiles, 0);
  }
  /// The first query of this warp.
  __device__ __forceinline__ int first_row(const Entry& at) const {
    return smem.tile[at.stage].first_query + (warp - 4) * 16;
  }
  /// Begins a query tile with at least one key tile.
  __device__ __forceinline__ void begin_tile(const Entry&, const Shape&) {
    mbarrier_wait(&smem.q_full[index], q_ring.phase);
    q_ring.advance();
  }
  /// Masks the scores of key tile n.
  template <int kCount>
  __device__ __forceinline__ void mask(float (&s)[kCount], const Shape& shape, const Entry& at,
                                       int n) const {
    mask_tile<C::kBlockN>(s, shape, first_row(at), n * C::kBlockN);
  }
  /// The scores of key tile n are complete.
  __device__ __forceinline__ void scores_done(int n) {
    release(&smem.k_empty[k_ring.stage]);
    k_ring.advance();
    if (n == 0) release(&smem.q_empty[index]);  // the next tile's queries may be loaded
  }
  /// Waits until P V is complete.
  template <int kCount>
  __device__ __forceinline__ void output_done(float (&acc)[kCount]) {
    wait_for_batch<0>(acc);
    release(&smem.v_empty[v_ring.stage]);
    v_ring.advance();
  }
  /// Stores the rows of the tile in `entry`, and starts the next tile's at zero.
  template <class T, int kCount>
  __device__ __forceinline__ void store(T* o, float* lse, const Shape& shape, float (&acc)[kCount],
                                        const RowStates& rows) {
    const QueuedTile& tile = smem.tile[entry.stage];
    finish_and_store_wide(o, lse, shape, tile.batch, tile.head, first_row(entry), acc, rows);
    __syncwarp();
    release(&smem.tile_empty[entry.stage]);
    entry.advance();
#pragma unroll
    for (float& x : acc) x = 0;
  }
};

}  // namespace cookbook::attention
