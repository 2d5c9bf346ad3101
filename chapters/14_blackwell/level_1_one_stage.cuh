// SPDX-License-Identifier: MIT
// Level 1: the accumulator is in tensor memory, and one thread starts every multiplication. One
// stage: load, multiply, load.
#pragma once

#include "chapters/14_blackwell/tensor_memory.cuh"

namespace cookbook::gemm {

namespace blackwell_one_stage {

using blackwell::Config;

template <class C>
struct Smem {
  Stage<C> stage;
  uint64_t full, empty;
  uint64_t multiplied;  // the accumulator is complete
  uint32_t tmem;        // the address of the allocation
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
    mbarrier_init(&smem.full, 1);
    mbarrier_init(&smem.empty, 1);
    mbarrier_init(&smem.multiplied, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  const uint32_t d = smem.tmem;

  if (threadIdx.x == 0) {
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      // [quote one_stage]
      const uint32_t phase = k_block & 1;
      load_k_block(smem.stage, &map_a, &map_b, &smem.full, tile, k_block);
      mbarrier_wait(&smem.full, phase);
      blackwell::mma_k_block(d, smem.stage, k_block > 0);
      tcgen05_commit(&smem.empty);  // arrives when the multiplication has read the stage
      mbarrier_wait(&smem.empty, phase);
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

}  // namespace blackwell_one_stage

struct BlackwellOneStage : blackwell::Level<blackwell_one_stage::Config> {
  static constexpr LevelText text{
      .name = "one_stage",
      .changed = "tcgen05: one thread starts the multiplication, the sums are in tensor memory",
      .expect =
          "within a block, a load and a multiplication never overlap; others measured 721 TFLOP/s, "
          "and cuBLAS 1,359 (learn-cuda)",
      .cost = "49 KB of shared memory and 256 columns of tensor memory per block; sm_100a",
  };

  static Claims claims(const Problem& p) { return counted(p, tiles(p), 256); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(blackwell_one_stage::kernel<Config>, tiles(plan.problem),
                  sizeof(blackwell_one_stage::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
