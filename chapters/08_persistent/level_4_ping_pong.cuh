// SPDX-License-Identifier: MIT
// Level 4: each consumer warpgroup has its own tile; one multiplies while the other stores.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace ping_pong {

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : persistent_static::Config<kA, kB> {
  static constexpr int kBlockN = 192;  // 128 x 192 accumulators in 128 threads
  static constexpr int kStages = 5;
  static constexpr int kStoreBuffers = 1;
  static constexpr int kTileConsumers = 1;  // a warpgroup computes a whole tile
};

using tma_store::Smem;
using tma_store::store_tile;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_c, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const ClusterTiles<C> grid(e);
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kTileConsumers * C::kCluster);  // of every block
  cluster_sync();  // the other block sends to our stages and arrives on our barriers

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = grid.cluster; t < grid.count(); t += grid.clusters) {
        const TileIndex tile = grid.at(t);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block, grid.rank);
        }
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kTileConsumers / 64;
    const int row = first_row<C>(warpgroup);
    const int group = warpgroup - 1;  // computes the block's tiles group, group + 2, ...
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = grid.cluster, turn = 0; t < grid.count(); t += grid.clusters, ++turn) {
      if (turn % 2 != group) {  // the other warpgroup's tile: skip its stages
        read.advance(k_blocks);
        continue;
      }
      // [quote ping_pong]
      if (turn > 0) named_barrier_sync(1 + group, 256);  // after the other warpgroup's wgmma
      const int last = mma_tile(acc, smem, tiles, read, k_blocks, release);
      const bool more = t + grid.clusters < grid.count();
      if (more) named_barrier_arrive(2 - group, 256);  // the other warpgroup's turn
      // [end quote]
      wgmma_wait<0>();
      wgmma_fence_operand(acc);  // the accumulators are read only from here
      release(last);             // the next tile's loads wait for it

      const TileIndex tile = grid.at(t);
      store_tile<C::kStoreBuffers>(acc, &map_c, smem.boxes[warp - 4],
                                   tile.m * C::kBlockM + row + warp % 4 * 16, tile.n * C::kBlockN);
    }  // no barrier: TMA stores the packed boxes while the warp computes the next tile
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
  cluster_sync();  // no block exits while the other still sends to it
}

}  // namespace ping_pong

struct PingPong : tma_store::LayoutLevel<ping_pong::Config> {
  static constexpr LevelText text{
      .name = "ping_pong",
      .changed = "one tile per warpgroup, in turns: the tensor cores never wait for an epilogue",
      .expect =
          "as level 3 or better: the whole epilogue is hidden, but tiles of 128 x 192 load more "
          "per multiplication",
      .cost = "192 accumulators per thread",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a<Config>(p)),
            at_least_previous(
                0.95,
                "128 x 192 tiles give 38 multiplications per byte loaded, 128 x 256 give 43: "
                "where L2 or power binds, that costs what the epilogue saves")};
  }
  static void run(const Plan& plan, Stream stream) {
    in_layout(plan, stream, [&](auto config) {
      using C = decltype(config);
      const Problem& p = plan.problem;
      launch(ping_pong::kernel<C>,
             {dim3(persistent_blocks<C>(p)), dim3(C::kThreads), sizeof(ping_pong::Smem<C>),
              C::kCluster},
             stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
