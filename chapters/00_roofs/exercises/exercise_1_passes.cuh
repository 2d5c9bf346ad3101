// SPDX-License-Identifier: MIT
// Exercise 0.1, a kernel with a planted bug: an L2 roof, eight loads in flight per thread. Every
// result is right, but the rate that it would report is one that no L2 has. Grade it: how many of
// the bytes that the problem counts does it request? Then let every pass read its rows.
//
// The grader counts what the source requests. A compiler may do to a repair what the bug does by
// hand: no thread writes `in`, so the compiler moves an ordinary load of it out of the loop. It
// does not move __ldcg, which load_four uses.
#pragma once

#include "chapters/00_roofs/level_read.cuh"

namespace cookbook::roofs {

struct PassesConfig {
  static constexpr int kThreads = 256;  // times 4 floats: one row of the problem
  static constexpr int kRows = 8;       // rows, and so loads, in flight per thread
};

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads)
    passes_read(const float* __restrict__ in, float* __restrict__ out, std::int64_t rows,
                int repeats) {
  __shared__ float partial[C::kRows][C::kThreads / 32];
  const std::int64_t first = std::int64_t{blockIdx.x} * C::kRows;
  const int lane_idx = threadIdx.x % 32;
  const int warp_idx = threadIdx.x / 32;
  float4 value[C::kRows];
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const std::int64_t row = first + r < rows ? first + r : first;
    value[r] = load_four<kAligned>(in + row * ReadProblem::kRow + 4 * threadIdx.x);
  }
  float sum[C::kRows] = {};
#pragma unroll 1
  for (int pass = 0; pass < repeats; ++pass) {
#pragma unroll
    for (int r = 0; r < C::kRows; ++r) {
      sum[r] += value[r].x + value[r].y + (value[r].z + value[r].w);
    }
  }
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    for (int offset = 16; offset > 0; offset /= 2) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
    }
    if (lane_idx == 0) partial[r][warp_idx] = sum[r];
  }
  __syncthreads();
  if (threadIdx.x < C::kRows && first + threadIdx.x < rows) {
    float total = 0;
    for (int w = 0; w < C::kThreads / 32; ++w) total += partial[threadIdx.x][w];
    out[first + threadIdx.x] = total;
  }
}

struct Passes : LevelOf<ReadProblem, ReadBuffers> {
  using Config = PassesConfig;
  static constexpr LevelText text{
      .name = "passes",
      .changed = "an L2 roof, with a bug",
      .expect = "every pass reads every row",
      .cost = "32 registers of loads in flight",
      .ladder = "l2",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").bytes(p.bytes()), global_loads("in").sectors_per_request(16),
            global_loads("in").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const auto [rows, repeats] = plan.problem;
    const bool aligned = reinterpret_cast<std::uintptr_t>(plan.buffers.in) % 16 == 0;
    launch(aligned ? passes_read<Config, true> : passes_read<Config, false>,
           {dim3(static_cast<unsigned>((rows + Config::kRows - 1) / Config::kRows)),
            dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, rows, static_cast<int>(repeats));
  }
};

}  // namespace cookbook::roofs
