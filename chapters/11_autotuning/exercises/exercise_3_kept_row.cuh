// SPDX-License-Identifier: MIT
// Exercise 11.3, a design: RMSNorm reads each row twice, once for the sum of squares and once for
// the result. No configuration of the space changes that: threads and blocks only change how much
// is in flight. Make the claim true: rows of up to 4,096 elements are read once. Longer rows must
// stay right. There are two ways; which one costs the occupancy that the space searches over?
#pragma once

#include "chapters/09_online_softmax/problem.hpp"
#include "common/device/math.cuh"
#include "common/device/warp.cuh"

namespace cookbook::rmsnorm {

struct KeptRowConfig {
  static constexpr int kThreads = 256;  // for one row
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    kept_row_kernel(const bf16* __restrict__ in, const bf16* __restrict__ weight,
                    bf16* __restrict__ out, softmax::Shape shape) {
  __shared__ float scratch[C::kThreads / kWarpSize];
  const bf16* x = in + blockIdx.x * shape.in_pitch;
  bf16* y = out + blockIdx.x * shape.out_pitch;
  const int cols = static_cast<int>(shape.cols), thread = static_cast<int>(threadIdx.x);
  float squares = 0;
  for (int col = thread; col < cols; col += C::kThreads) {  // yours
    const float value = to_float(x[col]);
    squares = fmaf(value, value, squares);
  }
  squares = block_sum<C::kThreads>(squares, scratch);
  const float scale = rsqrtf(squares / static_cast<float>(cols) + softmax::kEpsilon);
  for (int col = thread; col < cols; col += C::kThreads) {  // yours
    y[col] = from_float<bf16>(to_float(x[col]) * scale * to_float(weight[col]));
  }
}

struct ExerciseKeptRow : LevelOf<softmax::RmsProblem<bf16>, softmax::RmsBuffers<bf16>> {
  using Config = KeptRowConfig;
  static constexpr LevelText text{
      .name = "kept_row",
      .changed = "a row is read once and kept on the chip",
      .expect = "half the bytes of `in`",
      .cost = "registers, or shared memory",
      .ladder = "rmsnorm",
  };

  static Claims claims(const Problem& p) {
    const double row_bytes = 2.0 * static_cast<double>(p.shape.elements());
    return {global_loads("in").bytes(row_bytes), global_loads("in").coalesced(),
            global_stores("out").bytes(row_bytes)};
  }
  static void run(const Plan& plan, Stream stream) {
    const softmax::Shape& shape = plan.problem.shape;
    launch(kept_row_kernel<Config>, {softmax::row_grid(shape), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.weight, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::rmsnorm
