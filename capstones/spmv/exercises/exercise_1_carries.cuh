// SPDX-License-Identifier: MIT
// Exercise 1: each row gets the carry of the block before the one that it ends in. That is right as
// long as a row crosses only one boundary between blocks. Add all carries of a row, in the same
// order in every run.
#pragma once

#include "../merge_path.cuh"

namespace cookbook::spmv {

/// carries[b] is what block b has of the row that it has not ended; y lacks it. The row is `rows`
/// if there is none. One block of C::kThreads threads: your part.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    add_all_carries(const Carry* __restrict__ carries, float* __restrict__ y, int blocks,
                    int rows) {
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += C::kThreads) {
    const int row = carries[b].row;
    const bool ends_in_next = b + 1 == blocks || carries[b + 1].row != row;
    if (row < rows && ends_in_next) y[row] += carries[b].sum;
  }
}

struct Carries : Level {
  using Config = MergeConfig;
  using Plan = MergePlan<Config>;
  static constexpr LevelText text{
      .name = "carries",
      .changed = "your own sum of the parts of a row in several blocks",
      .expect = "right for rows of any length, and the same in every run",
      .cost = "a second kernel",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("values").bytes(4.0 * static_cast<double>(p.nonzeros))};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return Plan::make(problem, buffers);
  }

  static void run(const Plan& plan, Stream stream) {
    plan.start(stream);
    launch(add_all_carries<Config>, {dim3(plan.blocks > 0 ? 1 : 0), dim3(Config::kThreads)}, stream,
           plan.carries.as<Carry>(), plan.buffers.y, plan.blocks, plan.problem.rows);
  }
};

}  // namespace cookbook::spmv
