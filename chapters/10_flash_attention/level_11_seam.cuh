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
    SeamConsumer<C> consumer(smem, warp);
    const unsigned char* q_tile = smem.q + consumer.index * 64 * 128;  // this warpgroup's rows
    const Turns<C::kConsumers> turns{consumer.index};
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    float s[kBlockN / 2];          // (64 queries, keys) per warpgroup
    uint32_t p[kBlockN / 16][4];   // (64 queries, keys) as A operands of 16 keys
    float rescale[2];
    RowStates rows;
    // One turn: starts the scores of key tile n, and P V of the key tile before it. Returns when
    // the scores are complete.
    const auto turn = [&](int n) {
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      turns.begin();
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      turns.end();
      wait_for_batch<1>(s);
      consumer.scores_done(n);
    };

    turns.open();
    for (int tiles = consumer.wait_for_tile(consumer.slot); tiles >= 0;) {
      if (tiles == 0) {  // no key is visible
        rows = RowStates{};
        consumer.store(o, lse, shape, acc, rows);
        tiles = consumer.wait_for_tile(consumer.slot);
        continue;
      }
      // Step 1: the first scores and softmax of a run of tiles, with nothing to overlap.
      consumer.wait_for_queries();
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      wait_for_batch<0>(s);
      consumer.scores_done(tiles - 1);
      mask_tile<kBlockN>(s, shape, consumer.first_row(consumer.slot), (tiles - 1) * kBlockN);
      rows = RowStates{};
      lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other key tiles, as in level 10.
        for (int n = tiles - 2; n >= 0; --n) {
          turn(n);
          mask_tile<kBlockN>(s, shape, consumer.first_row(consumer.slot), n * kBlockN);
          const bool moved = lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
          finish_softmax_before_wait(rows);
          consumer.output_done(acc);
          if (moved) scale_rows(acc, rescale);
          pack_weights<T>(p, s);
        }
        // Step 3: the seam. A turn with the next query tile's first scores and this one's last P V.
        auto next = consumer.slot;
        next.advance();
        tiles = consumer.wait_for_tile(next);
        if (tiles <= 0) break;
        consumer.wait_for_queries();
        turn(tiles - 1);
        mask_tile<kBlockN>(s, shape, consumer.first_row(next), (tiles - 1) * kBlockN);
        RowStates fresh;
        lazy_softmax<C::kSlack>(s, fresh, rescale, shape.scale_log2);
        finish_softmax_before_wait(fresh);
        consumer.output_done(acc);
        consumer.store(o, lse, shape, acc, rows);
        rows = fresh;
        pack_weights<T>(p, s);
      }
      // Step 4: the last P V of a run, with nothing to overlap.
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      consumer.output_done(acc);
      consumer.store(o, lse, shape, acc, rows);
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
