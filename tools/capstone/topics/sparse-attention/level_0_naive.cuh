// SPDX-License-Identifier: MIT
// Level 0: one thread per query and head. It walks the list twice: for the largest score, and for
// the sums.
#pragma once

#include "problem.hpp"

namespace cookbook::sparse_attention {

struct NaiveConfig {
  static constexpr int kThreads = 64;  // rows of q per block
};

__device__ __forceinline__ float dot(const bf16* q, const bf16* k) {
  float sum = 0;
  for (int x = 0; x < kDim; ++x) sum += to_float(q[x]) * to_float(k[x]);  // [score]
  return kScale * sum;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    naive(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v,
          const std::int32_t* __restrict__ lists, bf16* __restrict__ out, Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (row >= shape.queries * shape.heads) return;
  const std::int32_t* list = lists + row / shape.heads * shape.lists_pitch;
  const bf16* own = q + row * shape.q_pitch;
  float largest = kMinusInfinity;
  for (std::int64_t j = 0; j < shape.listed && list[j] >= 0; ++j) {
    largest = fmaxf(largest, dot(own, k + list[j] * shape.k_pitch));
  }
  float weights = 0;
  float sums[kDim] = {};
  for (std::int64_t j = 0; j < shape.listed && list[j] >= 0; ++j) {
    const float weight = expf(dot(own, k + list[j] * shape.k_pitch) - largest);
    weights += weight;
    const bf16* values = v + list[j] * shape.v_pitch;
#pragma unroll
    for (int x = 0; x < kDim; ++x) sums[x] += weight * to_float(values[x]);  // [value]
  }
#pragma unroll
  for (int x = 0; x < kDim; ++x) {
    out[row * shape.out_pitch + x] = from_float<bf16>(weights > 0 ? sums[x] / weights : 0.0f);
  }
}

struct Naive : Level {
  using Config = NaiveConfig;
  static constexpr LevelText text{
      .name = "naive",
      .changed = "start: one thread per query and head, every score twice",
      .expect =
          "a load of two bytes per multiplication: far below the roof, however fast the "
          "caches are",
      .cost = "64 registers per thread for the sums",
  };

  static Claims claims(const Problem& p) {
    const double pairs = static_cast<double>(p.shape.queries * p.shape.heads * p.shape.listed);
    return {global_loads("k").on("score").bytes(2 * 2 * kDim * pairs, Relation::at_most),
            global_loads("v").on("value").bytes(2 * kDim * pairs, Relation::at_most),
            global_stores("out").sectors_per_request(32)};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto& [problem, at] = plan;
    const std::int64_t rows = problem.shape.queries * problem.shape.heads;
    const auto blocks = static_cast<unsigned>(ceil_div(rows, std::int64_t{Config::kThreads}));
    launch(naive<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, at.q, at.k, at.v,
           at.lists, at.out, problem.shape);
  }
};

}  // namespace cookbook::sparse_attention
