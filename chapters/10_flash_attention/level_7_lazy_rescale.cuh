// SPDX-License-Identifier: MIT
// Level 7: lazy rescaling. The maximum in exp2(s - max) only has to keep the weights in range, so
// it may be out of date. It is updated only when the true maximum is more than 8 larger (in log2
// units: a weight would exceed 2^8). This is rare after the first tiles. Otherwise the output keeps
// its scale, which saves d / 2 multiplications per thread and tile between one P V and the next.
#pragma once

#include "chapters/10_flash_attention/level_6_overlapped.cuh"

namespace cookbook::attention {

template <class CaseT>
struct LazyConfig : SpecialisedConfig<CaseT> {
  static constexpr int kSlack = 8;  // weights are at most 2^kSlack; fp16 holds up to 2^16
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    lazy_kernel(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                Shape shape, int query_tiles) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const auto [first_query, head, batch] =
      tile_index(blockIdx.x, query_tiles, kBlockM, shape.heads_q);
  const int tiles = key_tiles<kBlockM, kBlockN>(shape, first_query);

  // Readers of a stage: the consumers' warps.
  if (threadIdx.x == 0) init_barriers<C::kStages>(smem, 4 * C::kConsumers);
  __syncthreads();

  if (warp < 4) {
    // The producer: one thread of one warp. The other warps only give up their registers.
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one() && tiles > 0) {
      const int kv_head = shape.kv_head(head);
      load_queries<C>(smem, &q_map, head, first_query, batch);
      load_tiles_ahead<C>(smem, &k_map, &v_map, kv_head, tiles, batch);
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1;
    const unsigned char* q_tile = smem.q + consumer * 64 * 128;  // this warpgroup's rows
    const int warp_query = first_query + (warp - 4) * 16;
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    RowStates rows;
    StageCursor<C::kStages> k_ring, v_ring;
    const Turns<C::kConsumers> turns{consumer};
    turns.open();
    if (tiles > 0) {
      // Step 1: the first tile's scores and softmax, with nothing to overlap.
      float s[kBlockN / 2];         // (64 queries, keys) per warpgroup
      uint32_t p[kBlockN / 16][4];  // (64 queries, keys) as A operands of 16 keys
      float rescale[2];
      mbarrier_wait(&smem.q_full, 0);
      mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
      wait_for_batch<0>(s);
      if (lane_idx() == 0) mbarrier_arrive(&smem.k_empty[k_ring.stage]);
      k_ring.advance();
      mask_tile<kBlockN>(s, shape, warp_query, (tiles - 1) * kBlockN);
      lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
      pack_weights<T>(p, s);

      for (int n = tiles - 2; n >= 0; --n) {
        // Step 2: start this tile's scores, then P V of the previous tile: both are in flight.
        mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
        turns.begin();
        start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
        mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
        start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
        turns.end();

        // Step 3: softmax as soon as the scores are complete, while P V runs.
        wait_for_batch<1>(s);
        if (lane_idx() == 0) mbarrier_arrive(&smem.k_empty[k_ring.stage]);
        k_ring.advance();
        mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
        const bool moved = lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
        finish_softmax_before_wait(rows);

        // Step 4: P V is complete: only now may the output and P's registers change.
        wait_for_batch<0>(acc);
        if (lane_idx() == 0) mbarrier_arrive(&smem.v_empty[v_ring.stage]);
        v_ring.advance();
        if (moved) scale_rows(acc, rescale);
        pack_weights<T>(p, s);
      }

      // Step 5: P V of the last tile.
      mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
      wait_for_batch<0>(acc);
    }
    turns.close();

    finish_and_store(o, lse, shape, batch, head, warp_query, acc, rows);
  }
}

struct Lazy : HopperLevel<LazyConfig> {
  static constexpr LevelText text{
      .name = "lazy_rescale",
      .changed = "the output is rescaled only when a maximum has grown by more than 8 (log2)",
      .expect =
          "d / 2 of about 500 instructions per tile and thread disappear; they ran while this "
          "warpgroup had no wgmma in flight",
      .cost = "a vote per tile; weights up to 256 instead of 1",
  };

  static Claims claims(const Problem& p) { return key_claims(p, faster_than_previous(1.02)); }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return lazy_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
