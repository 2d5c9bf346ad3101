// SPDX-License-Identifier: MIT
// Level 0: a kernel for dx, one thread per row, and a kernel for dweight and dbias, one thread per
// column.
#pragma once

#include "problem.hpp"

namespace cookbook::layernorm_backward {

struct NaiveConfig {
  static constexpr int kThreads = 128;  // rows, or columns, per block
  static constexpr int kRun = 64;       // terms that are summed separately
};

template <class C>
__global__ void __launch_bounds__(C::kThreads) rows_of_dx(Buffers at, Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.rows) return;
  const float* x = at.x + row * shape.x_pitch;
  const float* dy = at.dy + row * shape.dy_pitch;
  const float mean = at.mean[row], scale = at.scale[row];
  float sum_g = 0, sum_gn = 0;
  // Runs of limited length: in one long sum, many similar terms would be rounded in the same
  // direction.
  for (std::int64_t begin = 0; begin < shape.cols; begin += C::kRun) {
    const std::int64_t end = begin + C::kRun < shape.cols ? begin + C::kRun : shape.cols;
    float run_g = 0, run_gn = 0;
    for (std::int64_t col = begin; col < end; ++col) {
      const float g = dy[col] * at.weight[col];  // [row]
      run_g += g;
      run_gn += g * ((x[col] - mean) * scale);  // [row]
    }
    sum_g += run_g, sum_gn += run_gn;
  }
  const float count = static_cast<float>(shape.cols);
  const float mean_g = sum_g / count, mean_gn = sum_gn / count;
  for (std::int64_t col = 0; col < shape.cols; ++col) {
    const float n = (x[col] - mean) * scale;
    at.dx[row * shape.dx_pitch + col] = scale * (dy[col] * at.weight[col] - mean_g - n * mean_gn);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads) columns(Buffers at, Shape shape) {
  const std::int64_t col = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (col >= shape.cols) return;
  float dweight = 0, dbias = 0;
  for (std::int64_t begin = 0; begin < shape.rows; begin += C::kRun) {
    const std::int64_t end = begin + C::kRun < shape.rows ? begin + C::kRun : shape.rows;
    float run_dweight = 0, run_dbias = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      const float dy = at.dy[row * shape.dy_pitch + col];                                // [column]
      const float n = (at.x[row * shape.x_pitch + col] - at.mean[row]) * at.scale[row];  // [column]
      run_dweight += dy * n;
      run_dbias += dy;
    }
    dweight += run_dweight, dbias += run_dbias;
  }
  at.dweight[col] = dweight;
  at.dbias[col] = dbias;
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: a thread per row for dx, a thread per column for dweight and dbias",
      .expect =
          "lanes of the first kernel read 32 rows, 8 times the sectors needed; the second has "
          "a few thousand threads, too few to keep memory busy",
      .cost = "x and dy are read three times",
  };

  static Claims claims(const Problem& p) {
    const double elements = static_cast<double>(p.shape.rows) * static_cast<double>(p.shape.cols);
    return {global_loads("x").bytes(12 * elements),
            global_loads("x").on("row").sectors_per_request(32),
            global_loads("x").on("column").coalesced(), global_stores("dweight").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, at] = plan;
    const auto blocks = [](std::int64_t count) {
      return dim3(static_cast<unsigned>(ceil_div(count, std::int64_t{Config::kThreads})));
    };
    launch(rows_of_dx<Config>, {blocks(problem.shape.rows), dim3(Config::kThreads)}, stream, at,
           problem.shape);
    launch(columns<Config>, {blocks(problem.shape.cols), dim3(Config::kThreads)}, stream, at,
           problem.shape);
  }
};

}  // namespace cookbook::layernorm_backward
