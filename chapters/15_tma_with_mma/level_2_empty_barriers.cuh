// SPDX-License-Identifier: MIT
// Level 2: a stage is free once each warp has said so. No barrier of the block is left in the loop.
#pragma once

#include "chapters/15_tma_with_mma/level_1_tma_tiles.cuh"

namespace cookbook::gemm {

namespace empty_barriers {

using warp_tiles::Config, warp_tiles::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = warp_tiles::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_barriers(smem, C::kThreads / 32);  // readers: all warps
  __syncthreads();
  StageCursor<C::kStages> write;  // where thread 0 loads next
  const auto load_next = [&](int k_block) {
    mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);  // at once if it was never used
    warp_tiles::load<C>(smem.stages[write.stage], &smem.full[write.stage], &map_a, &map_b, tile,
                        k_block);
    write.advance();
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages && i < k_blocks; ++i) load_next(i);
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
    // [quote empty_barriers]
    __syncwarp();  // every lane has read its fragments of this stage
    if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    __syncwarp();  // mma.sync needs all lanes together
    if (more) mbarrier_wait(&smem.full[read.stage], read.phase);
    fragments.multiply(acc, 1, more, read.stage, 0);
    if (threadIdx.x == 0 && k_block + C::kStages < k_blocks) load_next(k_block + C::kStages);
    __syncwarp();
    // [end quote]
  }
  warp_tiles::store_registers<C>(acc, out, e, tile, warp);
}

}  // namespace empty_barriers

struct EmptyBarriers : warp_tiles::Level<empty_barriers::Config> {
  static constexpr LevelText text{
      .name = "empty_barriers",
      .changed = "an `empty` barrier per stage instead of __syncthreads",
      .expect =
          "1.03x: a warp may be up to three k-blocks ahead of the slowest, so the tensor cores "
          "have work while one warp waits",
      .cost = "eight arrivals per k-block; thread 0 waits for the slowest warp",
  };

  static Claims claims(const Problem& p) {
    return loads(p, {at_least_previous(
                        0.93, "thread 0 still waits for the slowest warp, and warp 0 with it")});
  }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(empty_barriers::kernel<Config>, tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
