// SPDX-License-Identifier: MIT
// Level 2: merge path. Every thread takes as many steps along rows and nonzeros as any other.
#pragma once

#include "merge_path.cuh"

namespace cookbook::spmv {

struct Merge : Level {
  using Config = MergeConfig;
  using Plan = MergePlan<Config>;
  static constexpr LevelText text{
      .name = "merge",
      .changed = "equal work per tile: 1,920 steps, each a nonzero or the end of a row",
      .expect =
          "0.9 of the roof: no row is too long and none too short; a block has 15 loads of columns "
          "and of values per thread in flight, 120 KB per SM",
      .cost =
          "16 KB of shared memory per block, a search per tile, a second kernel for the rows "
          "that cross blocks",
  };

  // The bound on the loads of `carries` is about the traced size: one of its rows has three
  // carries. Otherwise the tracer would not see two threads of add_carries() that add to one row.
  static Claims claims(const Problem& p) {
    const double nonzeros = static_cast<double>(p.nonzeros);
    return {global_loads("values").bytes(4 * nonzeros),
            global_loads("values").sectors_over_ideal(1.2, Relation::at_most),
            global_loads("columns").bytes(4 * nonzeros), shared_stores().conflict_free(),
            global_loads("carries").on("part").requests(3, Relation::at_least)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return Plan::make(problem, buffers);
  }

  static void run(const Plan& plan, Stream stream) {
    plan.start(stream);
    launch(add_carries<Config>, {dim3(plan.blocks > 0 ? 1 : 0), dim3(Config::kThreads)}, stream,
           plan.carries.as<Carry>(), plan.buffers.y, plan.blocks, plan.problem.rows);
  }
};

}  // namespace cookbook::spmv
