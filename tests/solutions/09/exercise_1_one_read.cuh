// SPDX-License-Identifier: MIT
// Solution 9.1: the sum is kept relative to the running maximum, and rescaled as that grows. The
// maximum starts at a finite number, so that two empty parts merge to (lowest, 0) and not to NaN.
#pragma once

#include <limits>

#include "chapters/09_online_softmax/problem.hpp"
#include "common/device/math.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::softmax {

struct OneReadConfig {
  static constexpr int kThreads = 256;  // for one row
};

struct alignas(8) RunningPair {
  float max = std::numeric_limits<float>::lowest();
  float sum = 0;
};

/// `part` with one more element.
__device__ __forceinline__ RunningPair add_element(const RunningPair& part, float x) {
  const float max = fmaxf(part.max, x);
  return {max, part.sum * ex2_approx_ftz((part.max - max) * kLog2E) +
                   ex2_approx_ftz((x - max) * kLog2E)};
}

/// Two parts together.
__device__ __forceinline__ RunningPair merge_parts(const RunningPair& a, const RunningPair& b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * ex2_approx_ftz((a.max - max) * kLog2E) +
                   b.sum * ex2_approx_ftz((b.max - max) * kLog2E)};
}

__device__ __forceinline__ RunningPair merge_warp(RunningPair part, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    RunningPair other;
    other.max = __shfl_xor_sync(kFullWarp, part.max, offset);
    other.sum = __shfl_xor_sync(kFullWarp, part.sum, offset);
    part = merge_parts(part, other);
  }
  return part;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    one_read_softmax(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  constexpr int kWarps = C::kThreads / kWarpSize;
  const std::int64_t row = blockIdx.x;
  in += row * shape.in_pitch;
  out += row * shape.out_pitch;
  __shared__ uint2 table[kWarps];  // the pair of each warp

  RunningPair part;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    part = add_element(part, in[col]);
  }
  part = merge_warp(part, kWarpSize);
  if (lane_idx() == 0) store_vector(&table[warp_idx()], part);
  __syncthreads();  // every warp's pair is there
  part = merge_warp(load_vector<RunningPair>(&table[lane_idx() % kWarps]), kWarps);

  const float scale = 1 / part.sum;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    out[col] = ex2_approx_ftz((in[col] - part.max) * kLog2E) * scale;
  }
}

struct OneRead : Level<float> {
  using Config = OneReadConfig;
  static constexpr LevelText text{
      .name = "one_read",
      .changed = "your own running pair: maximum and sum in one pass",
      .expect = "two reads of the row instead of three",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").bytes(2 * pass_bytes<float>(p.shape)),
            global_loads("in").coalesced(),
            shared_stores().requests(8 * static_cast<double>(p.shape.rows), Relation::at_most)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(one_read_softmax<Config>, {row_grid(shape), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::softmax
