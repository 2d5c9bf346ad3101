// SPDX-License-Identifier: MIT
// Level 0: one thread per row. It reads the row k times and finds one result each time.
#pragma once

#include "problem.hpp"

namespace cookbook::top_k {

struct NaiveConfig {
  static constexpr int kThreads = 128;  // rows per block
};

/// Whether element `i`, which holds `a`, comes before element `j`, which holds `b`.
__device__ __forceinline__ bool comes_before(float a, int i, float b, int j) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (a > b || a < b) return a > b;
  return i < j;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const float* __restrict__ in, float* __restrict__ values,
          std::int32_t* __restrict__ indices, Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.rows) return;
  float last = 0;
  int last_col = -1;  // no result yet
  for (std::int64_t rank = 0; rank < shape.k; ++rank) {
    float best = 0;
    int best_col = -1;
    for (int col = 0; col < shape.cols; ++col) {
      const float value = in[row * shape.pitch + col];  // stride between lanes: a whole row
      const bool is_left = last_col < 0 || comes_before(last, last_col, value, col);
      if (is_left && (best_col < 0 || comes_before(value, col, best, best_col))) {
        best = value, best_col = col;
      }
    }
    values[row * shape.k + rank] = best;
    indices[row * shape.k + rank] = best_col;
    last = best, last_col = best_col;
  }
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per row, one reading of the row per result",
      .expect = "k readings of the row, of which each load of a warp touches 32 sectors",
      .cost = "nothing",
  };

  static Claims claims(const Problem& p) {
    const double elements = static_cast<double>(p.shape.rows) * static_cast<double>(p.shape.cols);
    return {global_loads("in").bytes(4 * elements * static_cast<double>(p.shape.k)),
            global_loads("in").sectors_per_request(32)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    // With k = 0 there is nothing to write.
    const std::int64_t rows = shape.k > 0 ? shape.rows : 0;
    const auto blocks = static_cast<unsigned>(ceil_div(rows, std::int64_t{Config::kThreads}));
    launch(naive<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.values, plan.buffers.indices, shape);
  }
};

}  // namespace cookbook::top_k
