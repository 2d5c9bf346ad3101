// SPDX-License-Identifier: MIT
// Level 3: no warp waits for the stores of a tile. (Compare with level 1: the schedule is static
// again.)
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace hidden_epilogue {

using persistent_static::Config;
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
    const Descriptors<C> tiles(smem.stages[0], row);
    const auto release = [&](int stage) { release_in_cluster<C::kCluster>(&smem.empty[stage]); };
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int t = grid.cluster; t < grid.count(); t += grid.clusters) {
      const int last = mma_tile(acc, smem, tiles, read, k_blocks, release);
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

}  // namespace hidden_epilogue

struct HiddenEpilogue : tma_store::LayoutLevel<hidden_epilogue::Config> {
  static constexpr LevelText text{
      .name = "hidden_epilogue",
      .changed = "no wait and no barrier after a tile: TMA stores it during the next tile's wgmma",
      .expect =
          "1.02x: the warpgroups drift apart, so one packs C while the other uses the tensor cores",
      .cost = "nothing: a warp waits for a box only when it packs it again",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a<Config>(p)),
            shared_stores().on("stage").conflict_free(), faster_than_previous(1.0)};
  }
  static void run(const Plan& plan, Stream stream) {
    in_layout(plan, stream, [&](auto config) {
      using C = decltype(config);
      const Problem& p = plan.problem;
      launch(hidden_epilogue::kernel<C>,
             {dim3(persistent_blocks<C>(p)), dim3(C::kThreads), sizeof(hidden_epilogue::Smem<C>),
              C::kCluster},
             stream, plan.a, plan.b, plan.c, extents_of(p));
    });
  }
};

}  // namespace cookbook::gemm
