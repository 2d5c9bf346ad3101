// SPDX-License-Identifier: MIT
// Level 3: a warp of its own loads. Its warpgroup gives its registers to those that multiply.
#pragma once

#include "chapters/15_tma_with_mma/level_2_empty_barriers.cuh"
#include "common/device/sync.cuh"

namespace cookbook::gemm {

namespace mma_producer {

struct Config : warp_tiles::Config {
  static constexpr int kMultiplying = 8;                    // warps
  static constexpr int kThreads = 128 + 32 * kMultiplying;  // + the producer's warpgroup
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;  // 24 + 2 x 240 of 512
};

using warp_tiles::Smem;

/// The producer's step: waits until the next stage is empty, then starts the loads of a k-block.
template <class C, class S>
__device__ __forceinline__ void load_next(S& smem, StageCursor<C::kStages>& write,
                                          const TensorMap* map_a, const TensorMap* map_b,
                                          TileIndex tile, int k_block) {
  mbarrier_wait(&smem.empty[write.stage], write.phase ^ 1);  // at once if it was never used
  warp_tiles::load<C>(smem.stages[write.stage], &smem.full[write.stage], map_a, map_b, tile,
                      k_block);
  write.advance();
}

/// A consumer warp's whole tile: adds all k-blocks to `acc`.
template <class C, class S>
__device__ __forceinline__ void multiply_tile(float (&acc)[C::kMmaM][C::kMmaN][4], S& smem,
                                              warp_tiles::Fragments<C>& fragments,
                                              StageCursor<C::kStages>& read, int k_blocks) {
  mbarrier_wait(&smem.full[read.stage], read.phase);
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) fragments.load_piece(0, read.stage, 0, i);
  for (int k_block = 0; k_block < k_blocks; ++k_block) {
    const int stage = read.stage;
    const bool more = k_block + 1 < k_blocks;
    read.advance();
    fragments.multiply(acc, 0, true, stage, 1);
    __syncwarp();  // every lane has read its fragments of this stage
    if (lane_idx() == 0) mbarrier_arrive(&smem.empty[stage]);
    __syncwarp();  // mma.sync needs all lanes together
    if (more) mbarrier_wait(&smem.full[read.stage], read.phase);
    fragments.multiply(acc, 1, more, read.stage, 0);
  }
  __syncwarp();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, 1)
    kernel(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           Output out, Extents e) {
  auto& smem = *dynamic_shared<Smem<C>>();
  const TileIndex tile = warp_tiles::tile_at<C>(static_cast<int>(blockIdx.x), e);
  const int k_blocks = ceil_div(e.k, C::kBlockK), warp = warp_idx_uniform();

  if (threadIdx.x == 0) init_barriers(smem, C::kMultiplying);  // readers: the warps that multiply
  __syncthreads();
  // [quote producer]
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block) {
        load_next<C>(smem, write, &map_a, &map_b, tile, k_block);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    // [end quote]
    float acc[C::kMmaM][C::kMmaN][4] = {};
    warp_tiles::Fragments<C> fragments(smem.stages[0], warp - 4);
    StageCursor<C::kStages> read;
    multiply_tile<C>(acc, smem, fragments, read, k_blocks);
    warp_tiles::store_registers<C>(acc, out, e, tile, warp - 4);
  }
}

}  // namespace mma_producer

struct MmaProducer : warp_tiles::Level<mma_producer::Config> {
  static constexpr LevelText text{
      .name = "producer",
      .changed = "a producer warp loads, eight warps multiply",
      .expect =
          "1.03x: no warp that multiplies waits for an empty stage, and every stage is loaded as "
          "soon as it is free",
      .cost = "128 more threads; setmaxnreg gives most of their registers to the others",
  };

  static Claims claims(const Problem& p) { return loads(p, {faster_than_previous(1.25)}); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(mma_producer::kernel<Config>, tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
