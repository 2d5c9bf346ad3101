// SPDX-License-Identifier: MIT
// Level 6: overlap within a warpgroup. The scores of the next tile are issued before P V of this
// one, and the softmax of the next tile runs during that P V. So a warpgroup keeps the tensor cores
// busy during its own exponentials, not only during the other's.
//
//     scores n-1 | PV n ............. |
//                | softmax n-1 ....... | rescale | scores n-2 | PV n-1 ...
#pragma once

#include "chapters/10_flash_attention/level_4_specialised.cuh"

namespace cookbook::attention {

/// The producer's main loop where S of a tile is computed before P V of the previous one: loads K
/// of each tile before V of the previous one, in the order in which the consumers use them. Called
/// by one thread.
template <class C, class Smem>
__device__ __forceinline__ void load_tiles_ahead(Smem& smem, const TensorMap* k_map,
                                                 const TensorMap* v_map, int kv_head, int tiles,
                                                 int batch) {
  StageCursor<C::kStages> k_ring, v_ring;
  const auto load_k = [&](int n) {
    load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, k_map, kv_head, n, batch);
  };
  const auto load_v = [&](int n) {
    load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, kv_head, n, batch);
  };
  load_k(tiles - 1);
  for (int n = tiles - 2; n >= 0; --n) {
    load_k(n);
    load_v(n + 1);
  }
  load_v(0);
}

template <class CaseT>
struct OverlappedConfig : SpecialisedConfig<CaseT> {
  /// Scores to weights. Returns whether the output must be rescaled: always.
  template <int kCount>
  __device__ __forceinline__ static bool softmax(float (&s)[kCount], RowStates& rows,
                                                 float (&rescale)[2], float scale_log2) {
    online_softmax(s, rows, rescale, scale_log2);
    return true;
  }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    overlapped_kernel(const __grid_constant__ TensorMap q_map,
                      const __grid_constant__ TensorMap k_map,
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
      C::softmax(s, rows, rescale, shape.scale_log2);
      pack_weights<T>(p, s);

      for (int n = tiles - 2; n >= 0; --n) {
        // [quote overlapped]
        // Step 2: start this tile's scores, then P V of the previous tile: both are in flight.
        mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
        turns.begin();
        start_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
        mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
        start_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
        turns.end();
        // [end quote]

        // Step 3: softmax as soon as the scores are complete, while P V runs.
        wait_for_batch<1>(s);
        if (lane_idx() == 0) mbarrier_arrive(&smem.k_empty[k_ring.stage]);
        k_ring.advance();
        mask_tile<kBlockN>(s, shape, warp_query, n * kBlockN);
        const bool moved = C::softmax(s, rows, rescale, shape.scale_log2);
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

struct Overlapped : HopperLevel<OverlappedConfig> {
  static constexpr LevelText text{
      .name = "overlapped",
      .changed = "softmax of the next tile during P V of this one",
      .expect =
          "the tensor cores have work queued from both warpgroups nearly all the time; what "
          "remains is the first and the last tile of a block, where nothing overlaps",
      .cost = "S, P and O in registers at once: kBlockN * 3 / 4 + d / 2 registers",
  };

  static Claims claims(const Problem& p) { return key_claims(p, faster_than_previous(1.02)); }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return overlapped_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
