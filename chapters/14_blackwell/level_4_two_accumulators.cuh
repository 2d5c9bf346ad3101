// SPDX-License-Identifier: MIT
// Level 4: a persistent loop with two accumulators. While four warps store one tile, the next one
// is multiplied into the other half of tensor memory.
#pragma once

#include <algorithm>

#include "chapters/14_blackwell/level_3_roles.cuh"

namespace cookbook::gemm {

namespace blackwell_two_accumulators {

struct Config : blackwell_roles::Config {
  static constexpr int kAccumulators = 2;  // 2 x 256 columns: all of tensor memory
};

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  uint64_t full[C::kStages], empty[C::kStages];
  uint64_t multiplied[C::kAccumulators], stored[C::kAccumulators];  // full and empty, of d
  uint32_t tmem;
};

/// Initialises the barriers of the accumulators. `readers`: warps that read one.
template <class S>
__device__ __forceinline__ void init_accumulator_barriers(S& smem, int readers) {
  for (int i = 0; i < S::Config::kAccumulators; ++i) {
    mbarrier_init(&smem.multiplied[i], 1);
    mbarrier_init(&smem.stored[i], readers);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();
  const int tiles = blackwell::tiles_of<C>(e);
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (warp == C::kMmaWarp) blackwell::allocate<C>(&smem.tmem);
  if (threadIdx.x == 0) {
    init_accumulator_barriers(smem, 4);
    init_barriers(smem, 1);  // a commit arrives once
  }
  __syncthreads();
  const uint32_t base = smem.tmem;

  StageCursor<C::kAccumulators> half;
  if (warp == C::kLoadWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> write;
      for (int t = first; t < tiles; t += blocks) {
        const TileIndex tile = blackwell::tile_at<C>(t, e);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          load_next(smem, write, &map_a, &map_b, tile, k_block);
        }
      }
    }
  } else if (warp == C::kMmaWarp) {
    if (elect_one()) {
      StageCursor<C::kStages> read;
      for (int t = first; t < tiles; t += blocks, half.advance()) {
        // [quote two_accumulators]
        mbarrier_wait(&smem.stored[half.stage], half.phase ^ 1);
        tcgen05_fence_after_thread_sync();
        const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
        for (int k_block = 0; k_block < k_blocks; ++k_block) {
          mbarrier_wait(&smem.full[read.stage], read.phase);
          blackwell::mma_k_block(d, smem.stages[read.stage], k_block > 0);
          tcgen05_commit(&smem.empty[read.stage]);
          read.advance();
        }
        tcgen05_commit(&smem.multiplied[half.stage]);
        // [end quote]
      }
    }
  } else {
    for (int t = first; t < tiles; t += blocks, half.advance()) {
      const TileIndex tile = blackwell::tile_at<C>(t, e);
      const uint32_t d = base + static_cast<uint32_t>(half.stage * C::kTileN);
      mbarrier_wait(&smem.multiplied[half.stage], half.phase);
      tcgen05_fence_after_thread_sync();
      // [quote release]
      const auto release = [&] {
        tcgen05_fence_before_thread_sync();
        __syncwarp();
        if (lane_idx() == 0) mbarrier_arrive(&smem.stored[half.stage]);
      };
      // [end quote]
      blackwell::store_accumulator<C::kTileN>(d, out, e, tile.m * C::kTileM, tile.n * C::kTileN,
                                              release);
    }
  }
  __syncthreads();  // every warp has read its lanes
  if (warp == C::kMmaWarp) tmem_dealloc(base, blackwell::kTmemColumns<C>);
}

}  // namespace blackwell_two_accumulators

struct BlackwellTwoAccumulators : blackwell::Level<blackwell_two_accumulators::Config> {
  static constexpr LevelText text{
      .name = "two_accumulators",
      .changed = "one block per SM, and a second accumulator: a tile is stored behind the next one",
      .expect =
          "storing a tile takes no time of the tensor core's any more; others measured 1,273 "
          "TFLOP/s after 1,170 (learn-cuda, with pairs)",
      .cost = "all 512 columns of tensor memory",
  };

  static unsigned blocks(const Problem& p) {
    return std::min(tiles(p), static_cast<unsigned>(device_info().sm_count));
  }
  static Claims claims(const Problem& p) { return counted(p, tiles(p), 512, Relation::at_most); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(blackwell_two_accumulators::kernel<Config>, blocks(plan.problem),
                  sizeof(blackwell_two_accumulators::Smem<Config>), plan, stream);
  }
};

}  // namespace cookbook::gemm
