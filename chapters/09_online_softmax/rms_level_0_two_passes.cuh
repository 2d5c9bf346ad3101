// SPDX-License-Identifier: MIT
// RMSNorm, level 0: one block per row reads it twice: for the squares, then for the
// multiplications.
#pragma once

#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/row_io.cuh"
#include "common/device/warp.cuh"

namespace cookbook::softmax {

template <class T>
using RmsLevel = LevelOf<RmsProblem<T>, RmsBuffers<T>>;

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    two_passes_rmsnorm(const typename C::T* __restrict__ in,
                       const typename C::T* __restrict__ weight, typename C::T* __restrict__ out,
                       Shape shape) {
  using T = typename C::T;
  const std::int64_t row = blockIdx.x;
  const int thread = threadIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ float shared[C::kThreads / kWarpSize];  // sum of each warp

  float squares = 0;
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    const float x = as_float(in[col]);
    squares += x * x;
  }
  squares = block_sum<C::kThreads>(squares, shared);

  const float scale = rsqrtf(squares / static_cast<float>(shape.cols) + kEpsilon);
  for (int col = thread; col < shape.cols; col += C::kThreads) {
    out[col] = rounded<T>(as_float(in[col]) * (scale * as_float(weight[col])));
  }
}

template <class T>
struct RmsTwoPasses : RmsLevel<T> {
  using Config = BlockConfig<T>;
  static constexpr LevelText text{
      .name = "two_passes",
      .changed = "start: one block per row, shuffles, two passes",
      .expect =
          "one read, one write and one more read, from L1 or L2 while those hold the rows in "
          "flight",
      .cost = "nothing",
  };

  static Claims claims(const RmsProblem<T>& p) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            global_loads("in").bytes(2 * pass_bytes<T>(p.shape))};
  }

  static void run(const typename RmsLevel<T>::Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(two_passes_rmsnorm<Config>, {row_grid(shape), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.weight, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::softmax
