// SPDX-License-Identifier: MIT
// Level 1: one warp computes one row. Neighbouring lanes load neighbouring elements.
#pragma once

#include "common/device/warp.cuh"
#include "problem.hpp"

namespace cookbook::gemv {

struct WarpPerRowConfig {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / kWarpSize;  // rows per block
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    warp_per_row_gemv(const bf16* __restrict__ a, const bf16* __restrict__ x, float* __restrict__ y,
                      Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kWarps + warp_idx();
  if (row >= shape.m) return;
  float sum = 0;
  // One load of A in flight per lane: more of them are level 3.
#pragma unroll 1
  for (std::int64_t col = lane_idx(); col < shape.k; col += kWarpSize) {
    sum += __bfloat162float(a[row * shape.pitch + col]) * __bfloat162float(x[col]);
  }
  sum = warp_sum(sum);
  if (lane_idx() == 0) y[row] = sum;
}

struct WarpPerRow : Level {
  using Config = WarpPerRowConfig;
  static constexpr LevelText text{
      .name = "warp_per_row",
      .changed = "one warp per row; its lanes' sums are added by shuffles",
      .expect =
          "every sector is used wholly, but 64 warps with 64 bytes each are 4 KB in flight per SM, "
          "where 40 KB are needed: a fifth of the roof at most",
      .cost = "five shuffles per row",
  };

  static Claims claims(const Problem& p) {
    const double elements = static_cast<double>(p.shape.m) * static_cast<double>(p.shape.k);
    return {global_loads("a").sectors_per_request(2), global_loads("a").coalesced(),
            global_loads("a").bytes(2 * elements), faster_than_previous(1.3)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(warp_per_row_gemv<Config>, {blocks_for(shape.m, Config::kWarps), dim3(Config::kThreads)},
           stream, plan.buffers.a, plan.buffers.x, plan.buffers.y, shape);
  }
};

}  // namespace cookbook::gemv
