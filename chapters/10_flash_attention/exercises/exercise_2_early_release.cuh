// SPDX-License-Identifier: MIT
// Exercise 10.2, a kernel with a planted bug: level 4 with one line moved to give the producer a
// head start. It may well give the right result every time you run it. The tracer still finds the
// bug: `./run exercise 10.2` names two lines. Which copy may overwrite memory that is still being
// read, and what exactly does wgmma_commit() guarantee?
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"

namespace cookbook::attention {

template <class CaseT>
struct EarlyReleaseConfig : CaseT {
  static constexpr int kConsumers = 2;                            // warpgroups, 64 queries each
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;  // + the producer
  static constexpr int kBlockM = 64 * kConsumers;                 // queries per block
  static constexpr int kBlockN = 128;                             // keys per tile
  static constexpr int kStages = 2;                               // tiles of K, and of V
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
  static constexpr int kTileBytes = kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char q[kBlockM * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kStages][kTileBytes];
    alignas(1024) unsigned char v[kStages][kTileBytes];
    uint64_t q_full, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
  };
};

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

struct EarlyRelease : Level {
  static constexpr LevelText text{
      .name = "early_release",
      .changed = "exercise: find the release that comes too early",
      .expect = "right under every schedule of the asynchronous units",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    using C = EarlyReleaseConfig<Case<bf16, 128>>;
    const Shape& s = p.shape;
    return {p, at, sequence_map(p, at.q, s.heads_q, s.seq_q, C::kBlockM),
            sequence_map(p, at.k, s.heads_kv, s.seq_k, C::kBlockN),
            sequence_map(p, at.v, s.heads_kv, s.seq_k, C::kBlockN)};
  }
  static Claims claims(const Problem& p) {
    using C = EarlyReleaseConfig<Case<bf16, 128>>;
    return {tma_loads("k").bytes(p.key_tile_bytes(C::kBlockM, C::kBlockN)),
            tma_loads("v").bytes(p.key_tile_bytes(C::kBlockM, C::kBlockN))};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      using C = EarlyReleaseConfig<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(early_release_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream,
             plan.q_map, plan.k_map, plan.v_map, o, plan.buffers.lse, s, query_tiles);
    });
  }
};

}  // namespace cookbook::attention
