// SPDX-License-Identifier: MIT
// Level 4: a block per SM computes tile after tile. The next tile's first stages load while this
// one is stored.
#pragma once

#include <algorithm>

#include "chapters/15_tma_with_mma/level_3_producer.cuh"

namespace cookbook::gemm {

namespace mma_persistent {

using Config = mma_producer::Config;
using mma_producer::load_next, mma_producer::multiply_tile;
using warp_tiles::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int tiles = ceil_div(e.m, C::kBlockM) * ceil_div(e.n, C::kBlockN);
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_barriers(smem, C::kMultiplying);
  __syncthreads();
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      // [quote persistent]
      for (int t = first; t < tiles; t += blocks) {
        const TileIndex tile = warp_tiles::tile_at<C>(t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next<C>(smem, write, &map_a, &map_b, tile, k_block);
        }
      }
      // [end quote]
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    warp_tiles::Fragments<C> fragments(smem.stages[0], warp - 4);
    StageCursor<C::kStages> read;
    for (int t = first; t < tiles; t += blocks) {
      float acc[C::kMmaM][C::kMmaN][4] = {};
      multiply_tile<C>(acc, smem, fragments, read, k_blocks);
      warp_tiles::store_registers<C>(acc, out, e, warp_tiles::tile_at<C>(t, e), warp - 4);
    }
  }
}

/// Blocks of the grid: one per SM, and no more than tiles.
template <class L>
unsigned blocks(const Problem& p) {
  return std::min(L::tiles(p), static_cast<unsigned>(device_info().sm_count));
}

}  // namespace mma_persistent

struct MmaPersistent : warp_tiles::Level<mma_persistent::Config> {
  static constexpr LevelText text{
      .name = "persistent",
      .changed = "one block per SM, tiles assigned round-robin",
      .expect =
          "1.03x: of a tile's 110 us about 4 were its first loads, its stores and the launch of "
          "the "
          "next block; the producer now loads the next tile during the stores",
      .cost = "a loop around everything",
  };

  static Claims claims(const Problem& p) { return loads(p, {faster_than_previous(1.0)}); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(mma_persistent::kernel<Config>,
                  mma_persistent::blocks<MmaPersistent>(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
