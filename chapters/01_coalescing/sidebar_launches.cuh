// SPDX-License-Identifier: MIT
// Sidebar: one launch, compared with sixteen launches of a sixteenth each. For small problems the
// launches cost more than the copy.
#pragma once

#include "chapters/01_coalescing/level_2_grid_stride.cuh"

namespace cookbook::coalescing {

template <int kLaunches>
struct Launches : Level {
  using Config = GridStrideConfig;
  static constexpr LevelText text{
      .name = kLaunches == 1 ? "one_launch" : "sixteen_launches",
      .changed =
          kLaunches == 1 ? "the grid-stride copy, once" : "the same kernel on sixteen slices",
      .expect = kLaunches == 1
                    ? "at this size the time is one launch's latency, not bandwidth"
                    : "up to 16 times slower: a kernel costs microseconds before it moves a byte",
  };

  static Claims claims(const Problem&) {
    Claims claims = {global_loads("in").coalesced(), global_stores("out").coalesced()};
    if (kLaunches > 1) {
      claims.push_back(at_least_previous(0.04, "sixteen launches in a row, each a sixteenth"));
    }
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t slice = ceil_div(ceil_div(n, kLaunches), 32) * 32;  // whole 128-byte lines
    for (std::int64_t begin = 0; begin < n; begin += slice) {
      const std::int64_t count = std::min(slice, n - begin);
      const unsigned blocks =
          resident_blocks(ceil_div(count, Config::kThreads), Config::kBlocksPerSm);
      launch(grid_stride_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream,
             plan.buffers.in + begin, plan.buffers.out + begin, count);
    }
  }
};

}  // namespace cookbook::coalescing
