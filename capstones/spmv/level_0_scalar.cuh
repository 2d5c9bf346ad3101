// SPDX-License-Identifier: MIT
// Level 0: a thread per row.
#pragma once

#include "problem.hpp"

namespace cookbook::spmv {

struct ScalarConfig {
  static constexpr int kThreads = 256;  // rows per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    scalar_spmv(const float* __restrict__ values, const std::int32_t* __restrict__ columns,
                const std::int32_t* __restrict__ offsets, const float* __restrict__ x,
                float* __restrict__ y, int rows) {
  const int row = static_cast<int>(blockIdx.x * C::kThreads + threadIdx.x);
  if (row >= rows) return;
  const int end = offsets[row + 1];
  float sum = 0;
  for (int k = offsets[row]; k < end; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

struct Scalar : Level {
  using Config = ScalarConfig;
  static constexpr LevelText text{
      .name = "scalar",
      .changed = "start: a thread per row",
      .expect =
          "a tenth of the roof: lanes read from 32 rows, so each load touches up to 32 sectors, "
          "and "
          "a warp waits for its longest row; a row of 20,000 nonzeros takes one thread a "
          "millisecond",
      .cost = "nothing",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("values").bytes(4.0 * static_cast<double>(p.nonzeros)),
            global_loads("values").sectors_over_ideal(1.3, Relation::at_least),
            global_stores("y").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, at] = plan;
    launch(scalar_spmv<Config>,
           {blocks_for(problem.rows, Config::kThreads), dim3(Config::kThreads)}, stream, at.values,
           at.columns, at.offsets, at.x, at.y, problem.rows);
  }
};

}  // namespace cookbook::spmv
