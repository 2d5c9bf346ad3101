// SPDX-License-Identifier: MIT
// Level 14: the last, partly empty wave of query tiles is divided. Its tiles are cut into pieces of
// keys, so that all blocks compute equally many keys of it. The block that ends last for a tile
// merges the pieces.
#pragma once

#include "chapters/10_flash_attention/level_13_mask_once.cuh"
#include "chapters/10_flash_attention/pieces.cuh"

namespace cookbook::attention {

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    last_wave_kernel(const __grid_constant__ TensorMap q_map,
                     const __grid_constant__ TensorMap k_map,
                     const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                     Shape shape, Schedule schedule, TileCounters* counters, Pieces pieces,
                     float minus_infinity) {
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
      produce_pieces<C>(smem, &q_map, &k_map, &v_map, shape, schedule, pieces, counters);
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    PieceConsumer<C> consumer(smem, warp);
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
      const int visible = shape.visible_keys(consumer.first_row(slot));
      clear = __shfl_sync(kFullWarp, visible / kBlockN - consumer.first_key_tile(slot), 0);
    };
    const auto mask = [&](const auto& slot, int n) {
      if (n >= clear)
        mask_tile<kBlockN>(s, shape, consumer.first_row(slot),
                           (consumer.first_key_tile(slot) + n) * kBlockN);
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
        consumer.store_piece(o, lse, shape, pieces, acc, rows);
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
        consumer.store_piece(o, lse, shape, pieces, acc, rows);
        rows = fresh;
        pack_weights<T>(p, s);
      }
      // Step 4: the last P V of a run, with nothing to overlap.
      mbarrier_wait(&smem.v_full[consumer.v_ring.stage], consumer.v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[consumer.v_ring.stage]);
      consumer.output_done(acc);
      consumer.store_piece(o, lse, shape, pieces, acc, rows);
    }
    if constexpr (!kFreeRunning) turns.close();
  }
}

struct LastWave : MaskOnce {
  static constexpr LevelText text{
      .name = "last_wave",
      .changed = "the keys of the query tiles that do not fill a wave are divided over all blocks",
      .expect =
          "without a mask: 15.52 waves take 15.5 instead of 16 times as long as one, so up to 3 %",
      .cost = "a list of pieces, and partial outputs in device memory",
  };

  struct Plan : MaskOnce::Plan {
    DeviceMemory begin, list, partials, arrived;
    Pieces pieces{};
  };
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{MaskOnce::prepare(p, at), {}, {}, {}, {}};
    const Shape& s = p.shape;
    const auto [block_m, block_n] = mask_once_tile(p);
    if (s.causal || plan.schedule.tiles == 0 || s.seq_k == 0) return plan;
    const Division division =
        divide_last_wave(plan.schedule.tiles, ceil_div(s.seq_k, block_n), device_info().sm_count);
    if (division.begin.empty()) return plan;
    plan.schedule.tiles = division.whole_tiles;
    const auto upload = [](const auto& list, const char* name) {
      const size_t bytes = list.size() * sizeof list[0];
      DeviceMemory memory(bytes, name);
      memory.copy_from_host(list.data(), bytes);
      return memory;
    };
    plan.begin = upload(division.begin, "first pieces");
    plan.list = upload(division.pieces, "pieces");
    const size_t warps = division.pieces.size() * static_cast<size_t>(block_m / 16);
    plan.partials = DeviceMemory(warps * (p.head_dim / 8 + 1) * 32 * sizeof(float4), "partials");
    plan.arrived = DeviceMemory(warps * sizeof(unsigned), "arrived");
    plan.arrived.fill(0);
    plan.pieces = {plan.begin.template as<int>(), plan.list.template as<Piece>(),
                   plan.partials.template as<float4>(), plan.arrived.template as<unsigned>()};
    return plan;
  }
  static Claims claims(const Problem& p) {
    Claims claims = MaskOnce::claims(p);
    claims.back() =
        at_least_previous(0.98, "at the power limit, idle SMs let the others run faster");
    return claims;
  }
  /// kernel_of(LastWaveConfig<...>{}): the kernel.
  template <class F>
  static void start(const Plan& plan, Stream stream, F kernel_of) {
    const Shape& s = plan.problem.shape;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      with_mask_once_config(c, s, [&](auto config) {
        using C = LastWaveConfig<decltype(config)>;
        const int sms = device_info().sm_count;
        const bool divided = plan.pieces.begin != nullptr;
        const dim3 grid(static_cast<unsigned>(divided ? sms : std::min(sms, plan.schedule.tiles)));
        launch(kernel_of(C{}), LaunchConfig{grid, C::kThreads, sizeof(typename C::Smem)}, stream,
               plan.q_map, plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule,
               plan.counters.template as<TileCounters>(), plan.pieces, kMinusInfinity);
      });
    });
  }
  static void run(const Plan& plan, Stream stream) {
    start(plan, stream, [](auto config) { return last_wave_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
