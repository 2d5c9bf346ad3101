// SPDX-License-Identifier: MIT
// Sidebar: clusters of two. Two blocks on neighbouring query tiles of a head need the same keys and
// values. Each block loads half of every tile and multicasts it to both, which halves the traffic
// from L2. All pairs take nearly the same time, so a static round-robin schedule suffices.
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"
#include "chapters/10_flash_attention/schedule.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::attention {

template <class PersistentC>
struct MulticastConfig : PersistentC {
  // The producer keeps more state, so it gets a few registers back from the consumers.
  static constexpr int kProducerRegisters = PersistentC::kConsumers == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = PersistentC::kConsumers == 2 ? 232 : 160;
};

inline constexpr int kCluster = 2;  // blocks, on neighbouring query tiles

/// As load_tile, but this block loads only 1 / kCluster of the rows, for both blocks of the
/// cluster, and both barriers count them. The map's box has kRows / kCluster rows.
template <int kHeadDim, int kRows>
__device__ __forceinline__ void load_tile_shared(unsigned char* tile, const TensorMap* map,
                                                 uint64_t* full, int head, int first_row, int batch,
                                                 int rank) {
  constexpr int kShare = kRows / kCluster;
  static_assert(kShare % 8 == 0, "the swizzle repeats every eight rows");
#pragma unroll
  for (int d = 0; d < kHeadDim; d += kPanel) {
    tma_load_4d_multicast(tile + (d / kPanel * kRows + rank * kShare) * 128, map, full, d, head,
                          first_row + rank * kShare, batch, (1 << kCluster) - 1);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    multicast_kernel(const __grid_constant__ TensorMap q_map,
                     const __grid_constant__ TensorMap k_map,
                     const __grid_constant__ TensorMap v_map, typename C::Element* o, float* lse,
                     Shape shape, Schedule schedule) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockM = C::kBlockM, kBlockN = C::kBlockN;
  constexpr int kPairM = kCluster * kBlockM;  // queries per cluster
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp = warp_idx_uniform();
  const int rank = static_cast<int>(cluster_block_rank());

  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    mbarrier_init(&smem.q_empty, 4 * C::kConsumers);
    for (int stage = 0; stage < C::kStages; ++stage) {
      mbarrier_init(&smem.k_full[stage], 1);
      mbarrier_init(&smem.v_full[stage], 1);
      // Both blocks fill a stage, so it must be empty in both. One arrival per consumer warp.
      mbarrier_init(&smem.k_empty[stage], 4 * C::kConsumers * kCluster);
      mbarrier_init(&smem.v_empty[stage], 4 * C::kConsumers * kCluster);
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // no block may arrive at the other's barriers before they are initialised

  // Cluster c computes pairs c, c + clusters, ... of query tiles.
  const int first_pair = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> k_ring, v_ring;
      StageCursor<1> q_ring;
      for (int pair = first_pair; pair < schedule.tiles; pair += clusters) {
        const auto [first_query, head, batch] = schedule.at(pair, kPairM, shape.heads_q);
        const int tiles =
            key_tiles<kPairM, kBlockN>(shape, first_query);  // the same in both blocks
        const int kv_head = shape.kv_head(head);
        const auto load_k = [&, batch = batch](int n) {
          uint64_t* full = &smem.k_full[k_ring.stage];
          mbarrier_wait(&smem.k_empty[k_ring.stage], k_ring.phase ^ 1);
          mbarrier_arrive_expect_tx(full, C::kTileBytes);
          load_tile_shared<kHeadDim, kBlockN>(smem.k[k_ring.stage], &k_map, full, kv_head,
                                              n * kBlockN, batch, rank);
          k_ring.advance();
        };
        const auto load_v = [&, batch = batch](int n) {
          uint64_t* full = &smem.v_full[v_ring.stage];
          mbarrier_wait(&smem.v_empty[v_ring.stage], v_ring.phase ^ 1);
          mbarrier_arrive_expect_tx(full, C::kTileBytes);
          load_tile_shared<kHeadDim, kBlockN>(smem.v[v_ring.stage], &v_map, full, kv_head,
                                              n * kBlockN, batch, rank);
          v_ring.advance();
        };
        if (tiles > 0) {
          load_k(tiles - 1);
          mbarrier_wait(&smem.q_empty, q_ring.phase ^ 1);
          mbarrier_arrive_expect_tx(&smem.q_full, kBlockM * kHeadDim * 2);
          load_tile<kHeadDim, kBlockM>(smem.q, &q_map, &smem.q_full, head,
                                       first_query + rank * kBlockM, batch);
          q_ring.advance();
          for (int n = tiles - 2; n >= 0; --n) {
            load_k(n);
            load_v(n + 1);
          }
        }
        if (tiles > 0) load_v(0);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    const int consumer = warp / 4 - 1, lane = lane_idx();
    const unsigned char* q_tile = smem.q + consumer * 64 * 128;  // this warpgroup's rows
    const auto release = [lane](uint64_t* empty) {               // in both blocks
      if (lane < kCluster) mbarrier_arrive_cluster_relaxed(empty, lane);
    };
    const auto release_q = [&] {
      if (lane == 0) mbarrier_arrive(&smem.q_empty);
    };
    StageCursor<C::kStages> k_ring, v_ring;
    StageCursor<1> q_ring;
    const Turns<C::kConsumers> turns{consumer};
    turns.open();
    for (int pair = first_pair; pair < schedule.tiles; pair += clusters) {
      const auto [first_query, head, batch] = schedule.at(pair, kPairM, shape.heads_q);
      const int tiles = key_tiles<kPairM, kBlockN>(shape, first_query);
      const int warp_query = first_query + rank * kBlockM + (warp - 4) * 16;
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
        if (tiles == 1) release_q();
        mask_tile<kBlockN>(s, shape, warp_query, (tiles - 1) * kBlockN);
        lazy_softmax<C::kSlack>(s, rows, rescale, shape.scale_log2);
        pack_weights<T>(p, s);

        for (int n = tiles - 2; n >= 0; --n) {
          // Step 2: start this tile's scores, then P V of the previous tile.
          mbarrier_wait(&smem.k_full[k_ring.stage], k_ring.phase);
          turns.begin();
          wgmma_fence_operand(s);
          wgmma_fence_operand(acc);
          wgmma_fence();
          issue_scores<T, kHeadDim, kBlockM, kBlockN>(s, q_tile, smem.k[k_ring.stage]);
          wgmma_commit();
          mbarrier_wait(&smem.v_full[v_ring.stage], v_ring.phase);
          wgmma_fence();
          issue_output<T, kHeadDim, kBlockN>(acc, p, smem.v[v_ring.stage]);
          wgmma_commit();
          turns.end();

          // Step 3: softmax as soon as the scores are complete, while P V runs.
          wait_for_batch<1>(s);
          release(&smem.k_empty[k_ring.stage]);
          k_ring.advance();
          if (n == 0) release_q();  // the next tile's queries may be loaded
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

      float inverse[2], row_lse[2];
      finish_rows(rows, shape.scale_log2, inverse, row_lse);
      store_rows(o, lse, shape, batch, head, warp_query, acc, inverse, row_lse);
    }
    turns.close();
  }
  cluster_sync();  // a block must not exit while the other arrives at its barriers
}

struct Multicast : Level {
  static constexpr LevelText text{
      .name = "multicast",
      .changed = "clusters of two blocks share every tile of K and V",
      .expect =
          "half of the bytes from L2; with 132 SMs reading every key tile for each 128 queries L2 "
          "is near its limit, and what it does not move costs no power",
      .cost =
          "blocks of a pair advance together; under a causal mask the shorter one idles for a tile",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
    Schedule schedule;  // of pairs
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    const Shape& s = p.shape;
    const auto [block_m, block_n] = tile_of(p, kPersistentTiles);
    return {p,
            at,
            sequence_map(p, at.q, s.heads_q, s.seq_q, block_m),
            sequence_map(p, at.k, s.heads_kv, s.seq_k, block_n / kCluster),
            sequence_map(p, at.v, s.heads_kv, s.seq_k, block_n / kCluster),
            make_schedule(p, kCluster * block_m, device_info().l2_bytes)};
  }
  static Claims claims(const Problem& p) {
    const auto [block_m, block_n] = tile_of(p, kPersistentTiles);
    return {tma_loads("k").bytes(p.key_tile_bytes(kCluster * block_m, block_n)),
            tma_loads("v").bytes(p.key_tile_bytes(kCluster * block_m, block_n)),
            at_least_previous(0.9, "L2 was not the limit, and two blocks in step are less free")};
  }
  // A template, so that a file that includes it for something else compiles no kernel.
  template <class = void>
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      kPersistentTiles(c, s, [&](auto config) {
        using C = MulticastConfig<decltype(config)>;
        const int clusters =
            std::min(std::max(1, device_info().sm_count / kCluster), plan.schedule.tiles);
        const dim3 grid(static_cast<unsigned>(clusters * kCluster));
        launch(multicast_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem), kCluster}, stream,
               plan.q_map, plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule);
      });
    });
  }
};

}  // namespace cookbook::attention
