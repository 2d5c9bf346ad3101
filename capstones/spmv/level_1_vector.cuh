// SPDX-License-Identifier: MIT
// Level 1: 8 or 32 neighbouring lanes per row.
#pragma once

#include "common/device/warp.cuh"
#include "problem.hpp"

namespace cookbook::spmv {

template <int kLanesPerRow>
struct VectorConfig {
  static constexpr int kThreads = 256;
  static constexpr int kLanes = kLanesPerRow;
  static constexpr int kRows = kThreads / kLanes;  // per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    vector_spmv(const float* __restrict__ values, const std::int32_t* __restrict__ columns,
                const std::int32_t* __restrict__ offsets, const float* __restrict__ x,
                float* __restrict__ y, int rows) {
  const int row = static_cast<int>(blockIdx.x * C::kRows + threadIdx.x / C::kLanes);
  const int lane = static_cast<int>(threadIdx.x % C::kLanes);
  float sum = 0;
  if (row < rows) {
    const int end = offsets[row + 1];
    for (int k = offsets[row] + lane; k < end; k += C::kLanes) sum += values[k] * x[columns[k]];
  }
  sum = warp_sum<C::kLanes>(sum);
  if (row < rows && lane == 0) y[row] = sum;
}

struct Vector : Level {
  using Config = VectorConfig<32>;
  static constexpr LevelText text{
      .name = "vector",
      .changed = "a warp per row; 8 lanes if rows have 16 nonzeros or fewer on average",
      .expect =
          "4 times as fast, 0.4 of the roof: neighbouring lanes read neighbouring nonzeros; but "
          "half "
          "of the rows have 5 nonzeros, so 27 lanes idle there, and each row waits for three loads "
          "in turn",
      .cost = "5 shuffles per row; idle lanes in short rows",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("values").bytes(4.0 * static_cast<double>(p.nonzeros)),
            global_loads("values").sectors_over_ideal(2, Relation::at_most)};
  }

  template <class C>
  static void run_with(const Plan& plan, Stream stream) {
    const auto& [problem, at] = plan;
    launch(vector_spmv<C>, {blocks_for(problem.rows, C::kRows), dim3(C::kThreads)}, stream,
           at.values, at.columns, at.offsets, at.x, at.y, problem.rows);
  }

  static void run(const Plan& plan, Stream stream) {
    plan.problem.mean <= 16 ? run_with<VectorConfig<8>>(plan, stream)
                            : run_with<Config>(plan, stream);
  }
};

}  // namespace cookbook::spmv
