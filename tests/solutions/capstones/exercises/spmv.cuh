// SPDX-License-Identifier: MIT
// Solution: the first block with a part of a row adds all of its carries, in order.
#pragma once

#include "capstones/spmv/merge_path.cuh"

namespace cookbook::spmv {

/// A row's carries are added by the first block of those with one, or by each of them.
template <class C, bool kByEach>
__global__ void __launch_bounds__(C::kThreads)
    add_all_carries(const Carry* __restrict__ carries, float* __restrict__ y, int blocks,
                    int rows) {
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += C::kThreads) {
    const int row = carries[b].row;
    if (row >= rows || (!kByEach && b > 0 && carries[b - 1].row == row)) continue;
    float sum = 0;
    for (int other = b; other < blocks && carries[other].row == row; ++other) {
      sum += carries[other].sum;
    }
    y[row] += sum;
  }
}

template <bool kByEach>
struct CarriesLevel : Level {
  using Config = MergeConfig;
  using Plan = MergePlan<Config>;
  static Claims claims(const Problem& p) {
    return {global_loads("values").bytes(4.0 * static_cast<double>(p.nonzeros))};
  }
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return Plan::make(problem, buffers);
  }
  static void run(const Plan& plan, Stream stream) {
    plan.start(stream);
    launch(add_all_carries<Config, kByEach>,
           {dim3(plan.blocks > 0 ? 1 : 0), dim3(Config::kThreads)}, stream,
           plan.carries.template as<Carry>(), plan.buffers.y, plan.blocks, plan.problem.rows);
  }
};

struct Carries : CarriesLevel<false> {
  static constexpr LevelText text{.name = "carries", .changed = "one thread per row adds"};
};

namespace wrong {

/// What a row has in its last block is added more than once.
struct Carries : CarriesLevel<true> {
  static constexpr LevelText text{.name = "carries", .changed = "each block adds what follows"};
};

}  // namespace wrong
}  // namespace cookbook::spmv
