// SPDX-License-Identifier: MIT
// Level 1: one warp sums one row. Its lanes read side by side and add up their sums by shuffles.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct WarpPerRowConfig {
  static constexpr int kThreads = 256;
  static constexpr int kRows = kThreads / 32;  // rows per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    warp_per_row(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kRows + threadIdx.x / 32;
  if (row >= shape.rows) return;  // all lanes of the warp
  float sum = 0;
  for (std::int64_t col = lane; col < shape.cols; col += 32) {  // stride between lanes: 4 bytes
    sum += in[row * shape.pitch + col];                         // [load]
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) out[row] = sum;  // [store]
}

struct WarpPerRow : Level {
  using Config = WarpPerRowConfig;
  static constexpr LevelText text{
      .name = "warp_per_row",
      .changed = "a warp per row: lane l reads element l, l + 32 ...",
      .expect = "4 sectors per request instead of 32: an eighth of the traffic between SM and L2",
      .cost = "5 shuffles per row",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").on("load").sectors_per_request(4), global_loads("in").coalesced(),
            faster_than_previous(1.5)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const auto blocks = static_cast<unsigned>(ceil_div(shape.rows, std::int64_t{Config::kRows}));
    launch(warp_per_row<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, shape);
  }
};

}  // namespace cookbook::mine
