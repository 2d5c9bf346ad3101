// SPDX-License-Identifier: MIT
// Level 7: the tensor cores do not idle between batches: one stays in flight while the next is
// issued.
#pragma once

#include "chapters/06_tma/level_4_pipeline.cuh"
#include "common/device/sync.cuh"

namespace cookbook::gemm {

/// The consumer's main loop with one batch in flight: multiplies `k_blocks` k-blocks, starting with
/// the stage at `read`. When a batch has been issued, the loop waits for the previous one, and
/// release(stage) frees its stage. Returns the stage of the last batch, which is still in flight.
template <class C, class Smem, int kMmaM, int kAccumulators, class Release>
__device__ __forceinline__ int mma_tile(float (&acc)[kMmaM][kAccumulators], Smem& smem,
                                        const Descriptors<C>& tiles, StageCursor<C::kStages>& read,
                                        int k_blocks, Release release) {
  int previous = 0;  // the stage that the batch in flight reads
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    // [quote one_in_flight]
    mbarrier_wait(&smem.full[read.stage], read.phase);
    mma_k_block(acc, tiles.at(read.stage), k_block > 0);
    wgmma_wait<1>();  // the previous batch has finished: its stage is free
    if (k_block > 0) release(previous);
    previous = read.stage;
    // [end quote]
    read.advance();
  }
  return previous;
}

namespace one_in_flight {

/// A consumer's part of a tile.
struct MainLoop {
  template <class C, class Smem, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void multiply(float (&acc)[kMmaM][kAccumulators], Smem& smem,
                                                  const Descriptors<C>& tiles, int k_blocks) {
    StageCursor<C::kStages> read;
    mma_tile(acc, smem, tiles, read, k_blocks, [&](int stage) {
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    });
    wgmma_wait<0>();  // the last batch; no load waits for its stage
  }
};

struct Config : DefaultOperands {  // level 6's
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 64;
  static constexpr int kStages = 4;
  static constexpr int kConsumers = 2;  // warpgroups, half of the tile's rows each
  static constexpr int kThreads = 128 * (1 + kConsumers);  // + the producer's warpgroup
  static constexpr int kBlocksPerSm = 1;
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;  // 40 + 2 x 232 = 3 x 168
  using MainLoop = one_in_flight::MainLoop;
  using Order = RowMajorOrder;
};

/// A block computes one tile of C. Each consumer warpgroup ends with store(acc, row, col, warp):
/// its accumulators, their first element of C, and the index of the warp.
template <class C, class Smem, class Store>
__device__ __forceinline__ void compute_tile(Smem& smem, const TensorMap* map_a,
                                             const TensorMap* map_b, const Extents& e,
                                             Store store) {
  TileIndex tile;
  const int tiles_m = ceil_div(e.m, C::kBlockM), tiles_n = ceil_div(e.n, C::kBlockN);
  if (!C::Order::tile(static_cast<int>(blockIdx.x), tiles_m, tiles_n, tile)) return;
  const int k_blocks = ceil_div(e.k, C::kBlockK);
  const int warp = warp_idx_uniform(), warpgroup = warp / 4;

  if (threadIdx.x == 0) init_barriers(smem, 4 * C::kConsumers);  // readers: the consumers' warps
  __syncthreads();

  if (warpgroup == 0) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next(smem, write, map_a, map_b, tile, k_block);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    constexpr int kMmaM = C::kBlockM / C::kConsumers / 64;
    const int row = (warpgroup - 1) * kMmaM * 64;  // this warpgroup's first row in the tile
    const Descriptors<C> tiles(smem.stages[0], row);
    float acc[kMmaM][C::kBlockN / 2];  // 64 x kBlockN each, over the warpgroup

    C::MainLoop::multiply(acc, smem, tiles, k_blocks);
    store(acc, tile.m * C::kBlockM + row, tile.n * C::kBlockN, warp);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  compute_tile<C>(
      *dynamic_shared<pipeline::Smem<C>>(), &map_a, &map_b, e,
      [&](auto& acc, int row, int col, int) { store_accumulators(acc, out, e, row, col); });
}

/// Everything but the level's name. A template, so that later chapters do not compile the kernel
/// again.
template <class C>
struct LevelOn : WgmmaLevel<C> {
  static void run(const TmaPlan& plan, Stream stream) {
    WgmmaLevel<C>::launch_tiles(kernel<C>, sizeof(pipeline::Smem<C>), plan, stream);
  }
};

}  // namespace one_in_flight

struct OneInFlight : one_in_flight::LevelOn<one_in_flight::Config> {
  static constexpr LevelText text{
      .name = "one_in_flight",
      .changed = "wait<1>: a batch of wgmma stays in flight while the next is issued",
      .expect = "1.03x: no gap between batches; in level 6 the other warpgroup filled most of it",
      .cost = "a stage is released one k-block later, so one stage less is being loaded",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(0.98, "the other warpgroup filled the gap already")};
  }
};

}  // namespace cookbook::gemm
