// SPDX-License-Identifier: MIT
// Level 13: which key tiles need a mask is computed once per query tile. Between the scores and
// their softmax, where nothing overlaps, one comparison of two registers remains. And where tiles
// of 160 keys leave less padding than tiles of 176, they are taken.
#pragma once

#include "chapters/10_flash_attention/level_12_free_running.cuh"

namespace cookbook::attention {

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    mask_once_kernel(const __grid_constant__ TensorMap q_map,
                     const __grid_constant__ TensorMap k_map,
                     const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                     Shape shape, Schedule schedule, TileCounters* counters, float minus_infinity) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  constexpr int kHead = kBlockN / 8;              // half of the second row
  constexpr bool kFreeRunning = kHeadDim == 128;  // else turns, and one softmax, as in level 11
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
    int clear =
        0;  // key tiles 0 .. clear - 1 need no mask: the warp's first query sees all of them
    const auto count_clear_tiles = [&](const auto& slot) {
      clear = __shfl_sync(kFullWarp, shape.visible_keys(consumer.first_row(slot)) / kBlockN, 0);
    };
    const auto mask = [&](const auto& slot, int n) {
      if (n >= clear) mask_tile<kBlockN>(s, shape, consumer.first_row(slot), n * kBlockN);
    };
    // Starts the scores of key tile n, and P V of the key tile before it. Returns when the scores
    // are complete.
    const auto start_tile = [&](int n) {
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      if constexpr (!kFreeRunning) turns.begin();
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      if constexpr (!kFreeRunning) turns.end();
      wait_for_batch<1>(s);
      consumer.scores_done(n);
    };

    if constexpr (!kFreeRunning) turns.open();
    for (int tiles = consumer.wait_for_tile(consumer.slot); tiles >= 0;) {
      if (tiles == 0) {  // no key is visible
        rows = RowStates{};
        consumer.store(o, lse, shape, acc, rows);
        tiles = consumer.wait_for_tile(consumer.slot);
        continue;
      }
      // Step 1: the first scores and softmax of a run of tiles, with nothing to overlap.
      count_clear_tiles(consumer.slot);
      consumer.wait_for_queries();
      mbarrier_wait(&smem.k_full[consumer.k_ring.stage], consumer.k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[consumer.k_ring.stage]);
      wait_for_batch<0>(s);
      consumer.scores_done(tiles - 1);
      mask(consumer.slot, tiles - 1);
      rows = RowStates{};
      lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
      pack_weights<T>(p, s);
      for (;;) {
        // Step 2: the other key tiles, as in level 12, or in level 11 at head dimension 64.
        for (int n = tiles - 2; n >= 0; --n) {
          start_tile(n);
          mask(consumer.slot, n);
          if constexpr (kFreeRunning) {
            const SoftmaxState state =
                begin_softmax<C::kSlack, kHead>(s, rows, rescale, shape.scale_log2, minus_infinity);
            finish_softmax_before_wait(rows);
            consumer.output_done(acc);
            if (state.moved) scale_rows(acc, rescale);
            end_softmax<kHead>(s, rows, state, shape.scale_log2);
          } else {
            const bool moved = lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
            finish_softmax_before_wait(rows);
            consumer.output_done(acc);
            if (moved) scale_rows(acc, rescale);
          }
          pack_weights<T>(p, s);
        }
        // Step 3: the seam: the next query tile's first scores and this one's last P V.
        auto next = consumer.slot;
        next.advance();
        tiles = consumer.wait_for_tile(next);
        if (tiles <= 0) break;
        count_clear_tiles(next);
        consumer.wait_for_queries();
        start_tile(tiles - 1);
        mask(next, tiles - 1);
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
    if constexpr (!kFreeRunning) turns.close();
  }
}

struct MaskOnce : FreeRunning {
  static constexpr LevelText text{
      .name = "mask_once",
      .changed =
          "which key tiles need a mask is computed once per query tile; tiles of 160 keys "
          "where they leave less padding",
      .expect =
          "1 to 2 % more at every length: a wait for shared memory and a dozen instructions no "
          "longer stand between the scores and their softmax",
      .cost = "one more register in the main loop, and one more tile size to compile",
  };

  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan = Seam::prepare(p, at);
    const int block_n = mask_once_tile(p).second;
    plan.k_map = sequence_map(p, at.k, p.shape.heads_kv, p.shape.seq_k, block_n);
    plan.v_map = sequence_map(p, at.v, p.shape.heads_kv, p.shape.seq_k, block_n);
    return plan;
  }
  static Claims claims(const Problem& p) {
    const auto [block_m, block_n] = mask_once_tile(p);
    return {tma_loads("k").bytes(p.key_tile_bytes(block_m, block_n)),
            tma_loads("v").bytes(p.key_tile_bytes(block_m, block_n)),
            global_stores("o").on("store").coalesced(),
            at_least_previous(0.98, "it pays with d = 64, short sequences and few keys")};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      with_mask_once_config(c, s, [&](auto config) {
        using C = SeamConfig<decltype(config)>;
        const dim3 grid(
            static_cast<unsigned>(std::min(device_info().sm_count, plan.schedule.tiles)));
        launch(mask_once_kernel<C>, LaunchConfig{grid, C::kThreads, sizeof(typename C::Smem)},
               stream, plan.q_map, plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule,
               plan.counters.template as<TileCounters>(), kMinusInfinity);
      });
    });
  }
};

}  // namespace cookbook::attention
