// SPDX-License-Identifier: MIT
// Exercise 6.2, a planted bug: level 5 with one line moved. On a GPU its result is almost always
// right. Run it under COOKBOOK_SIMT_ASYNC=early and =late. Under which of the two is it wrong, and
// which thread reads what too late? Find and repair the line.
#pragma once

#include "chapters/06_tma/level_5_warp_specialised.cuh"
#include "chapters/06_tma/level_7_one_in_flight.cuh"

namespace cookbook::gemm {

namespace exercise_release {

/// Level 5's loop of the consumers.
struct MainLoop {
  template <class C, class Smem, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void multiply(float (&acc)[kMmaM][kAccumulators], Smem& smem,
                                                  const Descriptors<C>& tiles, int k_blocks) {
    StageCursor<C::kStages> read;
    for (int k_block = 0; k_block < k_blocks; ++k_block) {
      mbarrier_wait(&smem.full[read.stage], read.phase);
      mma_k_block(acc, tiles.at(read.stage), k_block > 0);
      if (lane_idx() == 0) mbarrier_arrive(&smem.empty[read.stage]);
      __syncwarp();
      wgmma_wait<0>();
      read.advance();
    }
  }
};

struct Config : warp_specialised::Config {
  using MainLoop = exercise_release::MainLoop;
  using Order = RowMajorOrder;
};

}  // namespace exercise_release

struct ExerciseRelease : one_in_flight::LevelOn<exercise_release::Config> {
  static constexpr LevelText text{
      .name = "exercise_release",
      .changed = "level 5 with one line moved",
      .expect = "as level 5, as long as loads happen to be late",
  };

  static Claims claims(const Problem& p) { return {tma_loads("a").requests(boxes_of_a(p))}; }
};

}  // namespace cookbook::gemm
