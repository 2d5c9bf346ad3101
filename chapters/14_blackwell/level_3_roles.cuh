// SPDX-License-Identifier: MIT
// Level 3: a warp loads, a warp multiplies, four warps store.
#pragma once

#include "chapters/14_blackwell/level_2_stages.cuh"
#include "common/device/sync.cuh"

namespace cookbook::gemm {

namespace blackwell_roles {

struct Config : blackwell_stages::Config {
  // Warps 0 to 3 store: warp w reads lanes 32 w to 32 w + 31.
  static constexpr int kLoadWarp = 4, kMmaWarp = 5;
  static constexpr int kThreads = 192;
};

using blackwell_stages::Smem;

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
    init_barriers(smem, 1);  // a commit arrives once
  }
  __syncthreads();
  const uint32_t d = smem.tmem;

  // [quote roles]
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
        blackwell::mma_k_block(d, smem.stages[read.stage], k_block > 0);
        tcgen05_commit(&smem.empty[read.stage]);
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
  // [end quote]
  __syncthreads();  // every warp has read its lanes
  if (warp == C::kMmaWarp) tmem_dealloc(d, blackwell::kTmemColumns<C>);
}

}  // namespace blackwell_roles

struct BlackwellRoles : blackwell::Level<blackwell_roles::Config> {
  static constexpr LevelText text{
      .name = "roles",
      .changed = "a warp that loads, a warp that multiplies, four warps that store",
      .expect =
          "the thread that multiplies no longer waits for an empty stage; others measured 1,054 "
          "TFLOP/s after 914 (learn-cuda, with seven stages)",
      .cost = "two more warps",
  };

  static Claims claims(const Problem& p) { return counted(p, tiles(p), 256); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(blackwell_roles::kernel<Config>, tiles(plan.problem),
                  sizeof(blackwell_roles::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
