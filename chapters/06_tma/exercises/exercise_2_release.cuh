// SPDX-License-Identifier: MIT
// Exercise 6.2, a planted bug: level 5 with one line moved. On a GPU its result is almost always
// right. Run it under COOKBOOK_SIMT_ASYNC=early and =late. Under which of the two is it wrong, and
// which thread reads what too late? Find and repair the line.
#pragma once

#include "chapters/06_tma/level_5_warp_specialised.cuh"

namespace cookbook::gemm {

namespace exercise_release {

using warp_specialised::Config;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<pipeline::Smem<C>>();
  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers);  // readers: the consumers' warps
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, &map_a, &map_b, tile, k_block);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    StageCursor<C::kStages> read;
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      mbarrier_wait(&smem.full[read.stage], read.phase);
      mma_k_block(acc, tiles.at(read.stage), k_block > 0);
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);
      __syncwarp();
      wgmma_wait<0>();
      read.advance();
    }
    store_accumulators(acc, out, e, tile.m * C::kBlockM + row, tile.n * C::kBlockN);
  }
}

}  // namespace exercise_release

struct ExerciseRelease : WgmmaLevel<exercise_release::Config> {
  static constexpr LevelText text{
      .name = "exercise_release",
      .changed = "level 5 with one line moved",
      .expect = "as level 5, as long as loads happen to be late",
  };

  static Claims claims(const Problem& p) { return {tma_loads("a").requests(boxes_of_a(p))}; }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(exercise_release::kernel<Config>, sizeof(pipeline::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
