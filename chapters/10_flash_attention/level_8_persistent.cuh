// SPDX-License-Identifier: MIT
// Level 8: a persistent grid, one block per SM, with a schedule. A block fetches the indices of
// its query tiles from a counter. The longest tiles come first, and heads come in groups whose keys
// and values fit into L2 together. Copies for the next tile start while the previous tile's output
// is written. Tile sizes and the division of the registers are tuned.
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"
#include "chapters/10_flash_attention/schedule.cuh"

namespace cookbook::attention {

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    persistent_kernel(const __grid_constant__ TensorMap q_map,
                      const __grid_constant__ TensorMap k_map,
                      const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                      Shape shape, Schedule schedule, TileCounters* counters) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_empty, 4 * C::kConsumers);  // readers: the consumers' warps
    for (int entry = 0; entry < 2; ++entry) {
      mbarrier_init(&smem.tile_full[entry], 1);
      mbarrier_init(&smem.tile_empty[entry], 4 * C::kConsumers);
    }
    init_barriers<C::kStages>(smem, 4 * C::kConsumers);
  }
  __syncthreads();

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> k_ring, v_ring;
      StageCursor<2> entry;
      StageCursor<1> q_ring;
      int next = blockIdx.x;
      for (;;) {
        // Step 1: tell the consumers which tile comes next.
        const int tile = next;
        mbarrier_wait(&smem.tile_empty[entry.stage], entry.phase ^ 1);
        smem.tile[entry.stage] = tile;
        mbarrier_arrive(&smem.tile_full[entry.stage]);
        entry.advance();
        if (tile >= schedule.tiles) break;
        const auto [first_query, head, batch] = schedule.at(tile, kBlockM, shape.heads_q);
        const int tiles = key_tiles<kBlockM, kBlockN>(shape, first_query);
        const int kv_head = shape.kv_head(head);
        const auto load_k = [&, batch = batch](int n) {
          load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, &k_map, kv_head, n, batch);
        };
        const auto load_v = [&, batch = batch](int n) {
          load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, &v_map, kv_head, n, batch);
        };
        // Step 2: load its queries, keys and values, in the order in which the consumers use them.
        if (tiles > 0) {
          load_k(tiles - 1);
          mbarrier_wait(&smem.q_empty, q_ring.phase ^ 1);
          load_queries<C>(smem, &q_map, head, first_query, batch);
          q_ring.advance();
          for (int n = tiles - 2; n >= 0; --n) {
            load_k(n);
            load_v(n + 1);
          }
        }
        // The first gridDim.x tiles are assigned by block number. Fetch the next index before the
        // last wait.
        next = static_cast<int>(gridDim.x) + atomicAdd(&counters->next, 1);
        if (tiles > 0) load_v(0);
      }
      // Step 3: the last block resets the counters for the next launch.
      reset_counters(counters);
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1, lane = lane_idx();
    const unsigned char* q_tile = smem.q + consumer * 64 * 128;  // this warpgroup's rows
    const auto release = [lane](uint64_t* empty) {
      if (lane == 0) mbarrier_arrive(empty);
    };
    StageCursor<C::kStages> k_ring, v_ring;
    StageCursor<2> entry;
    StageCursor<1> q_ring;
    const Turns<C::kConsumers> turns{consumer};
    turns.open();
    for (;;) {
      mbarrier_wait(&smem.tile_full[entry.stage], entry.phase);
      const int tile = __shfl_sync(kFullWarp, smem.tile[entry.stage], 0);
      release(&smem.tile_empty[entry.stage]);
      entry.advance();
      if (tile >= schedule.tiles) break;
      const auto [first_query, head, batch] = schedule.at(tile, kBlockM, shape.heads_q);
      const int tiles = key_tiles<kBlockM, kBlockN>(shape, first_query);
      const int warp_query = first_query + (warp - 4) * 16;
      float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
      RowStates rows;
      if (tiles > 0) {
        // Step 1: the first tile's scores and softmax, with nothing to overlap.
        float s[kBlockN / 2];         // (64 queries, keys) per warpgroup
        uint32_t p[kBlockN / 16][4];  // (64 queries, keys) as A operands of 16 keys
        float rescale[2];
        mbarrier_wait(&smem.q_full, q_ring.phase);
        q_ring.advance();
        mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
        start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
        wait_for_batch<0>(s);
        release(&smem.k_empty[k_ring.stage]);
        k_ring.advance();
        if (tiles == 1) release(&smem.q_empty);
        mask_tile<kBlockN>(s, shape, warp_query, (tiles - 1) * kBlockN);
        lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
        pack_weights<T>(p, s);

        for (int n = tiles - 2; n >= 0; --n) {
          // Step 2: start this tile's scores, then P V of the previous tile.
          mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
          turns.begin();
          start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
          mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
          start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
          turns.end();

          // Step 3: softmax as soon as the scores are complete, while P V runs.
          wait_for_batch<1>(s);
          release(&smem.k_empty[k_ring.stage]);
          k_ring.advance();
          if (n == 0) release(&smem.q_empty);  // the next tile's queries may be loaded
          mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
          const bool moved = lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
          finish_softmax_before_wait(rows);

          // Step 4: P V is complete: only now may the output and P's registers change.
          wait_for_batch<0>(acc);
          release(&smem.v_empty[v_ring.stage]);
          v_ring.advance();
          if (moved) scale_rows(acc, rescale);
          pack_weights<T>(p, s);
        }

        // Step 5: P V of the last tile.
        mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
        start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
        wait_for_batch<0>(acc);
        release(&smem.v_empty[v_ring.stage]);
        v_ring.advance();
      }

      finish_and_store(o, lse, shape, batch, head, warp_query, acc, rows);
    }
    turns.close();
  }
}

struct Persistent : PersistentLevel {
  static constexpr LevelText text{
      .name = "persistent",
      .changed = "one block per SM; a counter assigns tiles, longest first; tuned tile sizes",
      .expect =
          "causal: no SM idles while others finish their long rows; full: the next tile's copies "
          "run during this one's output, and larger tiles read K and V less often from shared "
          "memory",
      .cost = "8 bytes of counters; the raster order differs from run to run",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    const std::pair<int, int> tile = tile_of(p, kPersistentTiles);
    return prepare_tiles(p, at, tile, tile.first);
  }
  static Claims claims(const Problem& p) {
    Claims claims = key_claims(p, tile_of(p, kPersistentTiles));
    claims.push_back(
        p.shape.causal
            ? faster_than_previous(1.02)
            : at_least_previous(0.98, "all tiles are equal, so only the epilogue can be hidden"));
    return claims;
  }
  // A template, so that a file that includes this level for something else compiles no kernel.
  template <class = void>
  static void run(const Plan& plan, Stream stream) {
    with_launch<std::type_identity_t, bf16>(
        plan, stream, kPersistentTiles,
        [](auto config, auto start) { start(persistent_kernel<decltype(config)>); });
  }
};

}  // namespace cookbook::attention
