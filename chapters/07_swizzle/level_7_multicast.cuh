// SPDX-License-Identifier: MIT
// Level 7: two blocks, one above the other, need the same columns of B. Each loads half for both.
#pragma once

#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/07_swizzle/tile_order.cuh"
#include "common/device/cluster.cuh"

namespace cookbook::gemm {

/// As chapter 6's load_k_block, for a block of a cluster: loads this block's tile of A, and slice
/// `rank` of B into every block of the cluster. `full` counts all bytes of both operands, because
/// the other blocks send their slices of B here.
template <class C>
__device__ __forceinline__ void load_k_block(Stage<C>& stage, const TensorMap* map_a,
                                             const TensorMap* map_b, uint64_t* full, TileIndex tile,
                                             int k_block, int rank) {
  // [quote multicast]
  mbarrier_arrive_expect_tx(full, sizeof(Stage<C>));
  Stage<C>::A::load(stage.a, map_a, full, tile.m * C::kBlockM, k_block * C::kBlockK);
  Stage<C>::B::load_slice(stage.b, map_b, full, tile.n * C::kBlockN, k_block * C::kBlockK, rank);
  // [end quote]
}

/// As chapter 6's load_next, for a block of a cluster.
template <class Smem, int kStages>
__device__ __forceinline__ void load_next(Smem& smem, StageCursor<kStages>& write,
                                          const TensorMap* map_a, const TensorMap* map_b,
                                          TileIndex tile, int k_block, int rank) {
  mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);  // all readers of all blocks
  load_k_block(smem.stages[write.stage], map_a, map_b, &smem.full[write.stage], tile, k_block,
               rank);
  write.advance();
}

/// This warp has read a stage: arrives at the `empty` barrier of each block of the cluster, since
/// each block sends a slice of B to this one. empty: this block's barrier of the stage.
template <int kCluster>
__device__ __forceinline__ void release_in_cluster(uint64_t* empty) {
  // [quote release]
  if (lane_idx() < kCluster) mbarrier_arrive_cluster_relaxed(empty, lane_idx());
  // [end quote]
}

namespace multicast {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : tma_store::Config<kA, kB> {
  using Order = GroupedOrder<8>;      // of cluster tiles, 256 x 256
  static constexpr int kCluster = 2;  // blocks, one above the other; each loads half of B
};

using tma_store::Smem;
using tma_store::store_tile;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  TileIndex tile;
  const int rank = static_cast<int>(cluster_block_rank());
  const int tiles_m = ceil_div(e.m, C::kBlockM * C::kCluster), tiles_n = ceil_div(e.n, C::kBlockN);
  C::Order::tile(static_cast<int>(blockIdx.x) / C::kCluster, tiles_m, tiles_n, tile);
  tile.m = tile.m * C::kCluster + rank;  // may lie below C: zero-filled, not stored
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers * C::kCluster);  // of every block
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, &map_a, &map_b, tile, k_block, rank);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    mma_tile(acc, smem, tiles, read, k_blocks,
             [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); });
    wgmma_wait<0>();           // the last batch; no load waits for its stage
    wgmma_fence_operand(acc);  // the accumulators are read only from here

    store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                 tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
  cluster_sync();  // no block exits while the other still sends to it
}

}  // namespace multicast

struct Multicast : tma_store::LayoutLevel<multicast::Config> {
  static constexpr LevelText text{
      .name = "multicast",
      .changed = "clusters of two: each block loads half of B for both",
      .expect = "1.1x: 32 KB per k-block come from L2 instead of 48, and L2 was the limit",
      .cost = "two blocks run in step; a cluster must fit two neighbours",
  };

  static Claims claims(const Problem& p) {
    const double blocks =
        Config::kCluster * static_cast<double>(blocks_for(
                               p.m, p.n, Config::kBlockM * Config::kCluster, Config::kBlockN));
    const double k_blocks = ceil_div(static_cast<int>(p.k), Config::kBlockK);
    // Panels of B. For each, a block now loads half of the rows.
    return {
        tma_loads("b").requests(blocks * k_blocks * Config::kBlockN / 64),
        at_least_previous(
            0.97, "halving what L2 sends helps only where L2 was the limit; here the clock is")};
  }
  // A template, so that a file that includes this level for something else compiles no kernel.
  template <class = void>
  static void run(const Plan& plan, Stream stream) {
    in_layout(plan, stream, [&](auto config) {
      using C = decltype(config);
      const Problem& p = plan.problem;
      const unsigned clusters = blocks_for(p.m, p.n, C::kBlockM * C::kCluster, C::kBlockN);
      launch(multicast::kernel<C>,
             {dim3(clusters * C::kCluster), dim3(C::kThreads), sizeof(multicast::Smem<C>),
              C::kCluster},
             stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
