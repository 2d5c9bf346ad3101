// SPDX-License-Identifier: MIT
// Exercise 10.2, a kernel with a planted bug: level 4 with one line moved to give the producer a
// head start. It may well give the right result every time you run it. The tracer still finds the
// bug: `./run exercise 10.2` names two lines. Which copy may overwrite memory that is still being
// read, and what exactly does wgmma_commit() guarantee?
#pragma once

#include "chapters/10_flash_attention/level_4_specialised.cuh"

namespace cookbook::attention {

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    early_release_kernel(const __grid_constant__ TensorMap q_map,
                         const __grid_constant__ TensorMap k_map,
                         const __grid_constant__ TensorMap v_map, typename C::Element* o,
                         float* lse, Shape shape, int query_tiles) {
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
      StageCursor<C::kStages> k_ring, v_ring;
      for (int n = tiles - 1; n >= 0; --n) {
        load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, &k_map, kv_head, n, batch);
        load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, &v_map, kv_head, n, batch);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1;
    const unsigned char* q_tile = smem.q + consumer * 64 * 128;  // this warpgroup's rows
    const int warp_query = first_query + (warp - 4) * 16;
    float acc[kHeadDim / 2] = {};  // (64 queries, d) per warpgroup
    RowStates rows;
    StageCursor<C::kStages> ring;
    if (tiles > 0) mbarrier_wait(&smem.q_full, 0);
    for (int n = tiles - 1; n >= 0; --n, ring.advance()) {
      // Step 1: scores.
      float s[kBlockN / 2];  // (64 queries, keys) per warpgroup
      mbarrier_wait(&smem.k_full[ring.stage], ring.phase);
      start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[ring.stage]);
      wait_for_batch<0>(s);
      if (lane_idx() == 0) mbarrier_arrive(&smem.k_empty[ring.stage]);

      // Step 2: online softmax; the weights stay in registers, rounded and packed in pairs.
      mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
      float rescale[2];
      online_softmax(s, rows, rescale, shape.scale_log2);
      scale_rows(acc, rescale);
      uint32_t p[kBlockN / 16][4];  // (64 queries, keys) as A operands of 16 keys
      pack_weights<T>(p, s);

      // Step 3: add P V to the output.
      mbarrier_wait(&smem.v_full[ring.stage], ring.phase);
      start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[ring.stage]);
      if (lane_idx() == 0) mbarrier_arrive(&smem.v_empty[ring.stage]);
      wait_for_batch<0>(acc);
    }

    finish_and_store(o, lse, shape, batch, head, warp_query, acc, rows);
  }
}

struct EarlyRelease : HopperLevel<SpecialisedConfig> {
  static constexpr LevelText text{
      .name = "early_release",
      .changed = "exercise: find the release that comes too early",
      .expect = "right under every schedule of the asynchronous units",
  };

  static Claims claims(const Problem& p) { return key_claims(p); }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return early_release_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
