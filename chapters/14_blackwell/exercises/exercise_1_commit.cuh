// SPDX-License-Identifier: MIT
// Exercise 14.1, a planted bug: level 3 with one line moved. On a GPU its result is almost always
// right. What is complete when `empty` says so? Find and repair the line.
#pragma once

#include "chapters/14_blackwell/level_3_roles.cuh"

namespace cookbook::gemm {

namespace exercise_commit {

using blackwell_roles::Config, blackwell_stages::Smem;

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = blackwell::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (warp == C::kMmaWarp) blackwell::allocate<C>(&smem.tmem);
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.multiplied, 1);
    init_barriers(smem, 1);
  }
  __syncthreads();
  const uint32_t d = smem.tmem;

  if (warp == C::kLoadWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, &map_a, &map_b, tile, k_block);
      }
    }
  } else if (warp == C::kMmaWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> read;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        mbarrier_wait(&smem.full[read.stage], read.phase);
        tcgen05_commit(&smem.empty[read.stage]);
        blackwell::mma_k_block(d, smem.stages[read.stage], k_block > 0);
        read.advance();
      }
      tcgen05_commit(&smem.multiplied);
    }
  } else {
    mbarrier_wait(&smem.multiplied, 0);
    tcgen05_fence_after_thread_sync();
    blackwell::store_accumulator<C::kTileN>(d, out, e, tile.m * C::kTileM, tile.n * C::kTileN,
                                            [] {});
  }
  __syncthreads();
  if (warp == C::kMmaWarp) tmem_dealloc(d, blackwell::kTmemColumns<C>);
}

}  // namespace exercise_commit

struct ExerciseCommit : blackwell::Level<exercise_commit::Config> {
  static constexpr LevelText text{
      .name = "exercise_commit",
      .changed = "level 3 with one line moved",
      .expect = "as level 3, as long as multiplications happen to be early",
  };

  static Claims claims(const Problem& p) { return counted(p, tiles(p), 256); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(exercise_commit::kernel<Config>, tiles(plan.problem),
                  sizeof(exercise_commit::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
