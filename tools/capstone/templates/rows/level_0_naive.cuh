// SPDX-License-Identifier: MIT
// Level 0: one thread sums one row.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct NaiveConfig {
  static constexpr int kThreads = 128;  // rows per block
  static constexpr int kRun = 64;       // terms that are summed separately
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.rows) return;
  float sum = 0;
  // Runs of limited length: in one long sum, many similar terms would be rounded in the same
  // direction.
  for (std::int64_t begin = 0; begin < shape.cols; begin += C::kRun) {
    const std::int64_t end = begin + C::kRun < shape.cols ? begin + C::kRun : shape.cols;
    float run = 0;
    for (std::int64_t col = begin; col < end; ++col) {
      run += in[row * shape.pitch + col];  // stride between lanes: a whole row
    }
    sum += run;
  }
  out[row] = sum;  // [store]
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per row",
      .expect = "every lane reads its own sector, 8 times what is needed: far below the roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").sectors_per_request(32), global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const auto blocks = static_cast<unsigned>(ceil_div(shape.rows, std::int64_t{Config::kThreads}));
    launch(naive<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, shape);
  }
};

}  // namespace cookbook::mine
