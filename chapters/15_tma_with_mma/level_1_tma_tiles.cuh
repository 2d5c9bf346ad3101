// SPDX-License-Identifier: MIT
// Level 1: chapter 5's last kernel with its tiles loaded by TMA, in half the shared memory.
#pragma once

#include "chapters/15_tma_with_mma/warp_tiles.cuh"

namespace cookbook::gemm {

namespace mma_tma_tiles {

using warp_tiles::Config, warp_tiles::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = warp_tiles::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_barriers(smem, 1);
  __syncthreads();
  const auto load = [&](int k_block) {
    const int stage = k_block % C::kStages;
    warp_tiles::load<C>(smem.stages[stage], &smem.full[stage], &map_a, &map_b, tile, k_block);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages && i < k_blocks; ++i) load(i);
  }
  __syncwarp();

  float acc[C::kMmaM][C::kMmaN][4] = {};
  warp_tiles::Fragments<C> fragments(smem.stages[0], warp);
  StageCursor<C::kStages> read;
  mbarrier_wait(&smem.full[0], 0);
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) fragments.load_piece(0, 0, 0, i);

  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    const int stage = read.stage;
    const bool more = k_block + 1 < k_blocks;
    read.advance();
    fragments.multiply(acc, 0, true, stage, 1);
    // [quote tma_tiles]
    __syncthreads();  // every warp has loaded its last fragments of this stage
    if (threadIdx.x == 0 && k_block + C::kStages < k_blocks) load(k_block + C::kStages);
    __syncwarp();
    if (more) mbarrier_wait(&smem.full[read.stage], read.phase);
    fragments.multiply(acc, 1, more, read.stage, 0);
    // [end quote]
  }
  warp_tiles::store_registers<C>(acc, out, e, tile, warp);
}

}  // namespace mma_tma_tiles

struct MmaTmaTiles : warp_tiles::Level<mma_tma_tiles::Config> {
  static constexpr LevelText text{
      .name = "tma_tiles",
      .changed = "TMA loads the tiles; four stages of 24 KB instead of 48 KB",
      .expect =
          "0.98x: no thread computes addresses or issues copies any more, but a k-block is half as "
          "long, so there are twice as many barriers of the block",
      .cost = "an elected thread; bases and pitches that are multiples of 16 bytes",
  };

  static Claims claims(const Problem& p) {
    return loads(p,
                 {at_least_previous(0.7, "warp 0 issues all copies, and all warps wait for it")});
  }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(mma_tma_tiles::kernel<Config>, tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
