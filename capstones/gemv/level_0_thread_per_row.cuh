// SPDX-License-Identifier: MIT
// Level 0: one thread computes one row.
#pragma once

#include "problem.hpp"

namespace cookbook::gemv {

struct ThreadPerRowConfig {
  static constexpr int kThreads = 64;  // rows per block
  static constexpr int kRun = 64;      // terms that are summed separately
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    thread_per_row_gemv(const bf16* __restrict__ a, const bf16* __restrict__ x,
                        float* __restrict__ y, Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.m) return;
  float sum = 0;
  // Runs of limited length: in one long sum, many similar terms would be rounded in the same
  // direction.
  for (std::int64_t begin = 0; begin < shape.k; begin += C::kRun) {
    const std::int64_t end = begin + C::kRun < shape.k ? begin + C::kRun : shape.k;
    float run = 0;
    for (std::int64_t col = begin; col < end; ++col) {
      run += __bfloat162float(a[row * shape.pitch + col]) * __bfloat162float(x[col]);
    }
    sum += run;
  }
  y[row] = sum;  // [store]
}

struct ThreadPerRow : Level {
  using Config = ThreadPerRowConfig;
  static constexpr LevelText text{
      .name = "thread_per_row",
      .changed = "start: one thread per row",
      .expect =
          "a warp's load touches 32 rows, so 32 sectors for 64 bytes, and 8,192 rows are only two "
          "warps per SM: below a tenth of the roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("a").sectors_per_request(32), global_loads("a").sectors_over_ideal(16),
            global_stores("y").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(thread_per_row_gemv<Config>,
           {blocks_for(shape.m, Config::kThreads), dim3(Config::kThreads)}, stream, plan.buffers.a,
           plan.buffers.x, plan.buffers.y, shape);
  }
};

}  // namespace cookbook::gemv
