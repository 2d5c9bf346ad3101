// SPDX-License-Identifier: MIT
// Level 5: one warp only loads, one warpgroup only multiplies. The producer gives its registers to
// the consumers.
#pragma once

#include "chapters/06_tma/level_4_pipeline.cuh"
#include "common/device/sync.cuh"

namespace cookbook::gemm {

namespace warp_specialised {

struct Config : DefaultOperands {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kStages = 3;
  static constexpr int kConsumers = 1;                     // warpgroups that multiply
  static constexpr int kThreads = 128 * (1 + kConsumers);  // + the producer's warpgroup
  static constexpr int kBlocksPerSm = 2;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 216;  // sum: 2 x 128
};

using pipeline::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers);  // readers: the consumers' warps
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    // [quote producer]
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, &map_a, &map_b, tile, k_block);
      }
    }
    // [end quote]
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
      wgmma_wait<0>();
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);
      read.advance();
    }
    store_accumulators(acc, out, e, tile.m * C::kBlockM + row, tile.n * C::kBlockN);
  }
}

/// Everything but the level's name: level 6 runs this kernel with another Config.
template <class C>
struct LevelOn : WgmmaLevel<C> {
  static void run(const TmaPlan& plan, Stream stream) {
    WgmmaLevel<C>::launch_tiles(kernel<C>, sizeof(Smem<C>), plan, stream);
  }
};

}  // namespace warp_specialised

struct WarpSpecialised : warp_specialised::LevelOn<warp_specialised::Config> {
  static constexpr LevelText text{
      .name = "warp_specialised",
      .changed = "a producer warp loads, a consumer warpgroup multiplies",
      .expect = "1.05x: no thread does both, so the next load starts as soon as a stage is empty",
      .cost = "128 more threads; they give most of their registers to the consumers",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
