// SPDX-License-Identifier: MIT
// Level 11: no seam between query tiles. The first scores of a block's next query tile are computed
// together with the last P V of the current one. The output is stored in pieces of 16 bytes, and
// each warpgroup's queries are loaded as soon as it is done with its previous ones.
#pragma once

#include "chapters/10_flash_attention/level_10_persistent.cuh"
#include "chapters/10_flash_attention/seam.cuh"

namespace cookbook::attention {

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    seam_kernel(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                Shape shape, Schedule schedule, TileCounters* counters) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_seam<C>(smem);
  __syncthreads();

  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      produce_tiles<C>(smem, &q_map, &k_map, &v_map, shape, schedule, counters);
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1, lane = lane_idx();
    const unsigned char* q_tile = smem.q + consumer * 64 * 128;  // this warpgroup's rows
    const auto release = [lane](uint64_t* empty) {
      if (lane == 0) mbarrier_arrive(empty);
    };
    using Slot = StageCursor<C::kSlots>;
    Slot slot;  // of the query tile whose output accumulates
    StageCursor<C::kStages> k_ring, v_ring;
    StageCursor<1> q_ring;
    const Turns<C::kConsumers> turns{consumer};

    // What is known about a tile stays in shared memory: registers are scarce.
    const auto wait_for_tile = [&](const Slot& at) {
      mbarrier_wait(&smem.tile_full[at.stage], at.phase);
      return __shfl_sync(kFullWarp, smem.tile[at.stage].key_tiles, 0);
    };
    const auto first_row = [&](const Slot& at) {
      return smem.tile[at.stage].first_query + (warp - 4) * 16;
    };
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    float s[kBlockN / 2];          // (64 queries, keys) per warpgroup
    uint32_t p[kBlockN / 16][4];   // (64 queries, keys) as A operands of 16 keys
    float rescale[2];
    RowStates rows;
    const auto scores_done = [&](int n) {
      release(&smem.k_empty[k_ring.stage]);
      k_ring.advance();
      if (n == 0) release(&smem.q_empty[consumer]);  // the next tile's queries may be loaded
    };
    const auto output_done = [&] {
      wait_for_batch<0>(acc);
      release(&smem.v_empty[v_ring.stage]);
      v_ring.advance();
    };
    // One turn: starts the scores of key tile n, and P V of the key tile before it. Returns when
    // the scores are complete.
    const auto turn = [&](int n) {
      mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
      turns.begin();
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
      mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
      turns.end();
      wait_for_batch<1>(s);
      scores_done(n);
    };
    // Stores the rows of the tile in `slot`, and starts the next tile's at zero.
    const auto store = [&] {
      const SeamTile& tile = smem.tile[slot.stage];
      finish_and_store_wide(o, lse, shape, tile.batch, tile.head, first_row(slot), acc, rows);
      __syncwarp();
      release(&smem.tile_empty[slot.stage]);
      slot.advance();
#pragma unroll
      for (float& x : acc) x = 0;
    };

    turns.open();
    for (int tiles = wait_for_tile(slot); tiles >= 0;) {
      if (tiles == 0) {  // no key is visible
        rows = RowStates{};
        store();
        tiles = wait_for_tile(slot);
        continue;
      }
      // Step 1: the first scores and softmax of a run of tiles, with nothing to overlap.
      mbarrier_wait(&smem.q_full[consumer], q_ring.phase);
      q_ring.advance();
      mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
      wait_for_batch<0>(s);
      scores_done(tiles - 1);
      mask_tile<kBlockN>(s, shape, first_row(slot), (tiles - 1) * kBlockN);
      rows = RowStates{};
      lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other tiles of keys, as in level 10.
        for (int n = tiles - 2; n >= 0; --n) {
          turn(n);
          mask_tile<kBlockN>(s, shape, first_row(slot), n * kBlockN);
          const bool moved = lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
          finish_softmax_before_wait(rows);
          output_done();
          if (moved) scale_rows(acc, rescale);
          pack_weights<T>(p, s);
        }
        // Step 3: the seam. A turn with the next query tile's first scores and this one's last P V.
        Slot next = slot;
        next.advance();
        tiles = wait_for_tile(next);
        if (tiles <= 0) break;
        mbarrier_wait(&smem.q_full[consumer], q_ring.phase);
        q_ring.advance();
        turn(tiles - 1);
        mask_tile<kBlockN>(s, shape, first_row(next), (tiles - 1) * kBlockN);
        RowStates fresh;
        lazy_softmax<C::kSlack>(s, fresh, rescale, shape.scale_log2);
        finish_softmax_before_wait(fresh);
        output_done();
        store();
        rows = fresh;
        pack_weights<T>(p, s);
      }
      // Step 4: the last P V of a run, with nothing to overlap.
      mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
      output_done();
      store();
    }
    turns.close();
  }
}

struct Seam : Persistent {
  static constexpr LevelText text{
      .name = "seam",
      .changed = "a query tile's last P V runs with the next one's first scores; 16-byte stores",
      .expect = "tensor cores no longer idle between query tiles: most with short sequences",
      .cost = "more state between producer and consumers; exchanges between lanes before stores",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = Persistent::prepare(p, at);
    plan.q_map = sequence_map(p, at.q, p.shape.heads_q, p.shape.seq_q, 64);  // per warpgroup
    return plan;
  }
  static Claims claims(const Problem& p) {
    const auto [block_m, block_n] = persistent_tile(p);
    return {tma_loads("k").bytes(p.key_tile_bytes(block_m, block_n)),
            tma_loads("v").bytes(p.key_tile_bytes(block_m, block_n)),
            global_stores("o").on("store").coalesced(),
            at_least_previous(0.98, "it pays with short sequences; these are long")};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      with_persistent_config(c, s.causal, [&](auto config) {
        using C = SeamConfig<decltype(config)>;
        const dim3 grid(
            static_cast<unsigned>(std::min(device_info().sm_count, plan.schedule.tiles)));
        launch(seam_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, plan.q_map,
               plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule,
               plan.counters.template as<TileCounters>());
      });
    });
  }
};

}  // namespace cookbook::attention
