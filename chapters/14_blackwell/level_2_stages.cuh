// SPDX-License-Identifier: MIT
// Level 2: four stages. A commit says that a stage is empty.
#pragma once

#include "chapters/14_blackwell/level_1_one_stage.cuh"

namespace cookbook::gemm {

namespace blackwell_stages {

struct Config : blackwell_one_stage::Config {
  static constexpr int kStages = 4;  // 48 KB each
};

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  uint64_t full[C::kStages], empty[C::kStages];
  uint64_t multiplied;  // the accumulator is complete
  uint32_t tmem;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = blackwell::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (warp == 0) blackwell::allocate<C>(&smem.tmem);
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.multiplied, 1);
    init_barriers(smem, 1);  // a commit arrives once
  }
  __syncthreads();
  const uint32_t d = smem.tmem;

  if (threadIdx.x == 0) {
    StageCursor<C::kStages> write, read;
    for (int i = 0; i < C::kStages - 1 && i < k_blocks; ++i) {
      load_next(smem, write, &map_a, &map_b, tile, i);
    }
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      // [quote stages]
      mbarrier_wait(&smem.full[read.stage], read.phase);
      blackwell::mma_k_block(d, smem.stages[read.stage], k_block > 0);
      tcgen05_commit(&smem.empty[read.stage]);
      read.advance();
      const int next = k_block + C::kStages - 1;  // into the stage of the multiplication before
      if (next < k_blocks) load_next(smem, write, &map_a, &map_b, tile, next);
      // [end quote]
    }
    tcgen05_commit(&smem.multiplied);
  }
  mbarrier_wait(&smem.multiplied, 0);
  tcgen05_fence_after_thread_sync();
  blackwell::store_accumulator<C::kTileN>(d, out, e, tile.m * C::kTileM, tile.n * C::kTileN, [] {});
  __syncthreads();  // every warp has read its lanes
  if (warp == 0) tmem_dealloc(d, blackwell::kTmemColumns<C>);
}

}  // namespace blackwell_stages

struct BlackwellStages : blackwell::Level<blackwell_stages::Config> {
  static constexpr LevelText text{
      .name = "stages",
      .changed = "four stages: loads run ahead of the multiplications by three k-blocks",
      .expect =
          "a load has the time of three k-blocks, 1,500 clocks, to come; others measured 914 "
          "TFLOP/s with two stages and 721 with one (learn-cuda)",
      .cost = "193 KB of shared memory per block: one block per SM",
  };

  static Claims claims(const Problem& p) { return counted(p, tiles(p), 256); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(blackwell_stages::kernel<Config>, tiles(plan.problem),
                  sizeof(blackwell_stages::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
