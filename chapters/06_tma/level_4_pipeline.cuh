// SPDX-License-Identifier: MIT
// Level 4: a ring of stages. `full`: a stage has been loaded. `empty`: all warps have read it.
#pragma once

#include "chapters/06_tma/level_2_wgmma.cuh"
#include "common/device/stage_cursor.cuh"

namespace cookbook::gemm {

/// Initialises the barriers of all stages. One thread calls; a barrier of the block must follow.
/// `full` completes when the producer's loads have arrived, `empty` when `readers` warps have read
/// the stage.
template <class Smem>
__device__ __forceinline__ void init_barriers(Smem& smem, int readers) {
  for (int s = 0; s < Smem::Config::kStages; ++s) {
    mbarrier_init(&smem.full[s], 1);
    mbarrier_init(&smem.empty[s], readers);
  }
  timeline::name_ring(smem.full, smem.empty);
  fence_mbarrier_init();
}

/// The producer's step: waits until the next stage is empty, then starts the loads of a k-block
/// into it. Called by one thread.
template <class Smem, int kStages>
__device__ __forceinline__ void load_next(Smem& smem, StageCursor<kStages>& write,
                                          const TensorMap* map_a, const TensorMap* map_b,
                                          TileIndex tile, int k_block) {
  // [quote load_next]
  mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);  // at once if it was never used
  load_k_block(smem.stages[write.stage], map_a, map_b, &smem.full[write.stage], tile, k_block);
  write.advance();
  // [end quote]
}

namespace pipeline {

struct Config : DefaultOperands {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64;
  static constexpr int kStages = 3;  // 96 KB: two blocks per SM
  static constexpr int kThreads = 128;
};

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  uint64_t full[C::kStages], empty[C::kStages];
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = row_major_tile(static_cast<int>(blockIdx.x), ceil_div(e.n, C::kBlockN));
  const int k_blocks = ceil_div(e.k, C::kBlockK);

  if (threadIdx.x == 0) init_barriers(smem, 4);  // readers: the four warps
  __syncthreads();

  StageCursor<C::kStages> write;  // where thread 0 loads next
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages && i < k_blocks; ++i) {
      load_next(smem, write, &map_a, &map_b, tile, i);
    }
  }

  const Descriptors<C> tiles(smem.stages[0]);
  float acc[C::kBlockM / 64][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

  StageCursor<C::kStages> read;
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    // [quote pipeline]
    mbarrier_wait(&smem.full[read.stage], read.phase);
    mma_k_block(acc, tiles.at(read.stage), k_block > 0);
    wgmma_wait<0>();
    if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);  // this warp has read the stage
    read.advance();
    if (threadIdx.x == 0 && k_block + C::kStages < k_blocks) {
      load_next(smem, write, &map_a, &map_b, tile, k_block + C::kStages);
    }
    // [end quote]
    __syncwarp();  // wgmma needs all lanes of its warps together
  }
  store_accumulators(acc, out, e, tile.m * C::kBlockM, tile.n * C::kBlockN);
}

/// Everything but the level's name. A template, so that later chapters do not compile the kernel
/// again.
template <class C>
struct LevelOn : WgmmaLevel<C> {
  static void run(const TmaPlan& plan, Stream stream) {
    WgmmaLevel<C>::launch_tiles(kernel<C>, sizeof(Smem<C>), plan, stream);
  }
};

}  // namespace pipeline

struct WgmmaPipeline : pipeline::LevelOn<pipeline::Config> {
  static constexpr LevelText text{
      .name = "pipeline",
      .changed = "three stages between loads and wgmma: full and empty barriers",
      .expect =
          "1.2x: a load has the time of two k-blocks of wgmma to arrive; before, only other blocks "
          "worked during a load",
      .cost = "96 KB of shared memory per block",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
