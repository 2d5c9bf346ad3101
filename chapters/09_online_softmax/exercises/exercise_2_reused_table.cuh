// SPDX-License-Identifier: MIT
// Exercise 9.2: one block per row in three passes; both reductions use one table of 8 words. It has
// a planted bug that most runs do not show, but the tracer finds it. Which thread may overwrite
// what, while which other thread still needs it? Find and repair it. One barrier is enough. The
// grader also accepts a second table: what does each cost?
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"

namespace cookbook::softmax {

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    reused_table_softmax(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  constexpr int kWarps = C::kThreads / kWarpSize;
  const std::int64_t row = blockIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ float table[kWarps];  // maximum, then sum, of each warp

  float max = kLowest;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) max = fmaxf(max, in[col]);
  max = warp_max(max);
  if (lane_idx() == 0) table[warp_idx()] = max;
  __syncthreads();
  max = warp_max<kWarps>(table[lane_idx() % kWarps]);

  float sum = 0;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    sum += exponential(in[col] - max);
  }
  sum = warp_sum(sum);
  if (lane_idx() == 0) table[warp_idx()] = sum;
  __syncthreads();
  sum = warp_sum<kWarps>(table[lane_idx() % kWarps]);

  const float scale = 1 / sum;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    out[col] = exponential(in[col] - max) * scale;
  }
}

struct ReusedTable : Level<float> {
  using Config = BlockConfig<float>;
  static constexpr LevelText text{
      .name = "reused_table",
      .changed = "one table for two reductions; has a bug",
      .expect = "no race, and no more shared memory traffic",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").bytes(3 * pass_bytes<float>(p.shape)),
            shared_stores().requests(16 * static_cast<double>(p.shape.rows))};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_rows<float>(reused_table_softmax<Config>, plan, stream, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
