// SPDX-License-Identifier: MIT
// Level 0: the definition, one thread per row: maximum, sum, division.
#pragma once

#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

template <class Element>
struct ThreePassesConfig {
  using T = Element;
  static constexpr int kThreads = 32;  // rows per block: few, so that every SM gets blocks
  static constexpr int kRun = 256;     // terms that are summed separately
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    three_passes_softmax(const typename C::T* __restrict__ in, typename C::T* __restrict__ out,
                         Shape shape) {
  using T = typename C::T;
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.rows) return;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;

  float max = kLowest;
  // [quote three_passes]
  for (int col = 0; col < shape.cols; ++col) {  // stride between lanes: a whole row
    max = fmaxf(max, as_float(in[col]));
  }
  // [end quote]
  // Runs of limited length: in one long sum, many similar terms would be rounded in the same
  // direction.
  float sum = 0;
  for (int begin = 0; begin < shape.cols; begin += C::kRun) {
    const int end = min(begin + C::kRun, static_cast<int>(shape.cols));
    float run = 0;
    for (int col = begin; col < end; ++col) run += exponential(as_float(in[col]) - max);
    sum += run;
  }
  const float scale = 1 / sum;
  for (int col = 0; col < shape.cols; ++col) {
    out[col] = rounded<T>(exponential(as_float(in[col]) - max) * scale);
  }
}

template <class T>
struct ThreePasses : Level<T> {
  using Config = ThreePassesConfig<T>;
  static constexpr LevelText text{
      .name = "three_passes",
      .changed = "start: one thread per row reads it three times",
      .expect =
          "every lane reads its own sector, and there are only rows x 1 threads: far below any "
          "roof",
      .cost = "nothing",
  };

  static Claims claims(const Problem<T>& p) {
    const double lanes = p.shape.rows < 32 ? static_cast<double>(p.shape.rows) : 32;
    return {global_loads("in").sectors_per_request(lanes),
            global_stores("out").sectors_per_request(lanes),
            global_loads("in").bytes(3 * pass_bytes<T>(p.shape))};
  }

  static void run(const PlanOf<T>& plan, Stream stream) {
    launch_rows<T>(three_passes_softmax<Config>, plan, stream, Config::kThreads, Config::kThreads);
  }
};

}  // namespace cookbook::softmax
