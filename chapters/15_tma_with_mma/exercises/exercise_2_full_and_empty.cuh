// SPDX-License-Identifier: MIT
// Exercise 15.2, a hole: level 3 without what its producer and its consumers say to each other. As
// it stands nobody waits. Write the two waits, and the arrival that releases a stage. When may one
// lane speak for its warp? `init_barriers` has said that each of the eight warps arrives once.
#pragma once

#include "chapters/15_tma_with_mma/level_3_producer.cuh"

namespace cookbook::gemm {

namespace exercise_full_and_empty {

using mma_producer::Config, warp_tiles::Smem;

/// The producer, before it loads into a stage that it may have used before. write: the stage, and
/// the parity of its phase, 0 in the first round.
template <class C, class S>
__device__ __forceinline__ void wait_until_empty(S& /*smem*/,
                                                 const StageCursor<C::kStages>& /*write*/) {
  // Yours. At the first use of a stage it must not wait.
}

/// A consumer's warp, before it reads a stage. read: as above.
template <class C, class S>
__device__ __forceinline__ void wait_until_full(S& /*smem*/,
                                                const StageCursor<C::kStages>& /*read*/) {
  // Yours.
}

/// A consumer's warp, all lanes: they have read their last fragments of a stage.
template <class C, class S>
__device__ __forceinline__ void release(S& /*smem*/, int /*stage*/) {
  // Yours. mma.sync needs all lanes together afterwards.
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
  if (warp < 4) {
    register_dealloc<C::kProducerRegisters>();
    if (warp == 0 && elect_one()) {
      StageCursor<C::kStages> write;
      for (int k_block = 0; k_block < k_blocks; ++k_block, write.advance()) {
        wait_until_empty<C>(smem, write);
        warp_tiles::load<C>(smem.stages[write.stage], &smem.full[write.stage], &map_a, &map_b, tile,
                            k_block);
      }
    }
  } else {
    register_alloc<C::kConsumerRegisters>();
    float acc[C::kMmaM][C::kMmaN][4] = {};
    warp_tiles::Fragments<C> fragments(smem.stages[0], warp - 4);
    StageCursor<C::kStages> read;
    for (int k_block = 0; k_block < k_blocks; ++k_block, read.advance()) {
      wait_until_full<C>(smem, read);
#pragma unroll
      for (int i = 0; i < C::kMmaM; ++i) fragments.load_piece(0, read.stage, 0, i);
      fragments.multiply(acc, 0, true, read.stage, 1);
      release<C>(smem, read.stage);
      fragments.multiply(acc, 1, false, read.stage, 0);
    }
    warp_tiles::store_registers<C>(acc, out, e, tile, warp - 4);
  }
}

}  // namespace exercise_full_and_empty

struct ExerciseFullAndEmpty : warp_tiles::Level<exercise_full_and_empty::Config> {
  static constexpr LevelText text{
      .name = "exercise_full_and_empty",
      .changed = "level 3, with its waits and arrivals by you",
      .expect = "right under every schedule of the copies, and without a race",
      .cost = "the first fragments of a k-block are not loaded ahead",
  };

  static Claims claims(const Problem& p) { return loads(p, {}); }
  static void run(const Plan& plan, Stream stream) {
    launch_blocks(exercise_full_and_empty::kernel<Config>, tiles(plan.problem), plan, stream);
  }
};

}  // namespace cookbook::gemm
