// SPDX-License-Identifier: MIT
// Exercise 9.1: this softmax is right, but reads its row twice before it writes: once for the
// maximum, once for the sum. Fill in `add` and `merge` so that one pass yields both, and remove the
// second pass. The claim allows two reads of `in` in total, and 8 stores to shared memory per row.
// Rows with -inf, +inf and NaN must behave as before: mind the initial value of the running
// maximum.
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

/// `part` with one more element: your part.
__device__ __forceinline__ RunningPair add_element(const RunningPair& part, float x) {
  return {fmaxf(part.max, x), part.sum};
}

/// Merges two parts: your part.
__device__ __forceinline__ RunningPair merge_parts(const RunningPair& a, const RunningPair& b) {
  return {fmaxf(a.max, b.max), a.sum + b.sum};
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
  __shared__ float sums[kWarps];

  RunningPair part;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    part = add_element(part, in[col]);
  }
  part = merge_warp(part, kWarpSize);
  if (lane_idx() == 0) store_vector(&table[warp_idx()], part);
  __syncthreads();  // every warp's pair is in the table
  part = merge_warp(load_vector<RunningPair>(&table[lane_idx() % kWarps]), kWarps);

  // The pass to remove.
  float sum = 0;
  for (int col = threadIdx.x; col < shape.cols; col += C::kThreads) {
    sum += ex2_approx_ftz((in[col] - part.max) * kLog2E);
  }
  part.sum = block_sum<C::kThreads>(sum, sums);

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
