// SPDX-License-Identifier: MIT
// Sidebar: the kernels of levels 4 and 5 with other launch shapes. Three ladders use this file:
// `block_size`, `bytes_in_flight` and `grid_size`.
#pragma once

#include "chapters/01_coalescing/level_4_in_flight.cuh"
#include "chapters/01_coalescing/level_5_streaming.cuh"

namespace cookbook::coalescing {

template <int kThreadsValue, int kLoadsValue, int kBlocksPerSmValue>
struct ShapeConfig {
  static constexpr int kThreads = kThreadsValue;
  static constexpr int kLoads = kLoadsValue;
  static constexpr int kBlocksPerSm = kBlocksPerSmValue;  // 0: one block per batch, no loop
};

/// The streaming copy with one launch shape. The table shows which shapes are faster, so a level
/// only claims its traffic.
template <int kThreads, int kLoads, int kBlocksPerSm>
struct Shape : Level {
  using Config = ShapeConfig<kThreads, kLoads, kBlocksPerSm>;
  static constexpr LevelText text{
      .name = "shape",
      .changed = "launch shape only",
      .expect = "bytes in flight decide, however they are reached",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks =
        resident_blocks(ceil_div(n, 4 * kThreads * kLoads), Config::kBlocksPerSm);
    launch(streaming_copy<Config>, {dim3(blocks), dim3(kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
