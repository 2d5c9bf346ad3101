// SPDX-License-Identifier: MIT
// Level 2: tiles are assigned one by one, each to the next cluster that asks.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace persistent_dynamic {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : persistent_static::Config<kA, kB> {
  static constexpr int kQueue = 2;  // tiles that the scheduler fetches ahead
};

using tma_store::store_tile;

template <class C>
struct Smem : tma_store::Smem<C> {
  int queue[C::kQueue];  // indices of fetched tiles
  // full: the entry has been written. empty: all readers of the cluster have read it (rank 0's
  // barrier counts them).
  uint64_t queue_full[C::kQueue], queue_empty[C::kQueue];
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e, int* next) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const ClusterTiles<C> grid(e);
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kQueue; ++i) {
      mbarrier_init(&smem.queue_full[i], 1);
      mbarrier_init(&smem.queue_empty[i],
                    C::kCluster * (1 + 4 * C::kConsumers));  // producer, consumers
    }
    init_barriers(smem, 4 * C::kTileConsumers * C::kCluster);  // of every block
  }
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  const auto next_tile = [&](StageCursor<C::kQueue>& at) {  // the same for all readers
    mbarrier_wait_cluster(&smem.queue_full[at.stage], at.phase);
    return smem.queue[at.stage];
  };
  const auto release_entry = [&](StageCursor<C::kQueue>& at) {  // one thread of each reader
    mbarrier_arrive_cluster(&smem.queue_empty[at.stage], 0);
  };

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      StageCursor<C::kQueue> at;
      for (int t = next_tile(at); t < grid.count(); t = next_tile(at)) {
        release_entry(at);
        at.advance();
        const TileIndex tile = grid.at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, grid.rank);
        }
      }
    }
    if (warp == 1 && grid.rank == 0 && elect_one()) {  // the scheduler, one per cluster
      StageCursor<C::kQueue> at;
      for (int t = 0; t < grid.count(); at.advance()) {
        mbarrier_wait_cluster(&smem.queue_empty[at.stage], at.phase ^ 1);
        // [quote dynamic]
        t = atomicAdd(&next[0], 1);
        for (int r = 0; r < C::kCluster; ++r) {
          *map_shared(&smem.queue[at.stage], r) = t;
          mbarrier_arrive_cluster(&smem.queue_full[at.stage], r);
        }
        // [end quote]
      }
      const bool is_last = atomicAdd(&next[1], 1) == grid.clusters - 1;
      if (is_last) next[0] = next[1] = 0;  // reset for the next launch
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kTileConsumers / 64;
    const int row = first_row<C>(warpgroup);
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    StageCursor<C::kQueue> at;
    for (int t = next_tile(at); t < grid.count(); t = next_tile(at)) {
      __syncwarp();  // all lanes have read the queue
      if (lane_idx() == 0) release_entry(at);
      at.advance();
      const int last = mma_tile(acc, smem, tiles, read, k_blocks, release);
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = grid.at(t);
      store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                   tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
      if (lane_idx() == 0) tma_store_wait<0>();
      named_barrier_sync(1, 256);  // the whole tile of C is written
    }
  }
  cluster_sync();  // no block exits while the other still sends to it
}

}  // namespace persistent_dynamic

struct PersistentDynamic : tma_store::LayoutLevel<persistent_dynamic::Config> {
  struct Plan {
    TmaPlan tma;
    DeviceMemory next;  // the counter, and the number of finished clusters
  };
  static constexpr LevelText text{
      .name = "dynamic",
      .changed =
          "a counter in global memory assigns the tiles; one scheduler thread per cluster fetches "
          "ahead",
      .expect =
          "the same: all tiles of a GEMM take equally long. It pays where they do not (grouped "
          "GEMM)",
      .cost = "one atomic per tile, and a queue in shared memory",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), global_loads().requests(0),
            at_least_previous(0.97,
                              "equal tiles leave nothing to balance; the counter is fetched "
                              "ahead, so it costs nothing either")};
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    Plan plan{LayoutLevel::prepare(p, at), DeviceMemory(2 * sizeof(int), "next tile")};
    plan.next.fill(0);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) {
    in_layout(plan.tma, stream, [&](auto config) {
      using C = decltype(config);
      const Problem& p = plan.tma.problem;
      launch(persistent_dynamic::kernel<C>,
             {dim3(persistent_blocks<C>(p)), dim3(C::kThreads), sizeof(persistent_dynamic::Smem<C>),
              C::kCluster},
             stream, plan.tma.a, plan.tma.b, plan.tma.c, extents_of(p), plan.next.as<int>());
    });
  }
};

}  // namespace cookbook::gemm
