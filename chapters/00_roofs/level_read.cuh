// SPDX-License-Identifier: MIT
// Reads every float, 16 bytes at a time, past L1: from HBM if the array is far larger than L2, from
// L2 if it is smaller and read repeatedly.
#pragma once

#include "chapters/00_roofs/problem.hpp"
#include "common/device/ceil_div.cuh"

namespace cookbook::roofs {

struct ReadConfig {
  static constexpr int kThreads = 256;  // times 4 floats: one row of the problem
  static constexpr int kRows = 8;       // rows, and so loads, in flight per thread
};

/// Loads four floats past L1: one 16-byte load, or four of 4 bytes if the base is not aligned.
template <bool kAligned>
__device__ __forceinline__ float4 load_four(const float* at) {
  if (kAligned) return __ldcg(reinterpret_cast<const float4*>(at));
  return make_float4(__ldcg(at), __ldcg(at + 1), __ldcg(at + 2), __ldcg(at + 3));
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads)
    read_rows(const float* __restrict__ in, float* __restrict__ out, std::int64_t rows,
              int repeats) {
  __shared__ float partial[C::kRows][C::kThreads / 32];
  const std::int64_t first = std::int64_t{blockIdx.x} * C::kRows;
  const int lane_idx = threadIdx.x % 32;
  const int warp_idx = threadIdx.x / 32;
  float sum[C::kRows] = {};
#pragma unroll 1
  for (int pass = 0; pass < repeats; ++pass) {
    // [quote read]
    float4 value[C::kRows];
#pragma unroll
    for (int r = 0; r < C::kRows; ++r) {
      const std::int64_t row = first + r < rows ? first + r : first;
      const float* at = in + row * ReadProblem::kRow;
      value[r] = load_four<kAligned>(at + 4 * threadIdx.x);
    }
#pragma unroll
    for (int r = 0; r < C::kRows; ++r) {
      sum[r] += value[r].x + value[r].y + (value[r].z + value[r].w);
    }
    // [end quote]
    // Registers must not serve the next pass.
    __threadfence_block();
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

struct Read : LevelOf<ReadProblem, ReadBuffers> {
  using Config = ReadConfig;
  static constexpr LevelText text{
      .name = "read",
      .changed = "16-byte loads, eight in flight per thread, no stores",
      .expect = "the memory's rate when the bus never switches from reads to writes",
      .cost = "32 registers of loads in flight",
  };
  static Claims claims(const Problem& p) {
    return {global_loads("in").sectors_per_request(16), global_loads("in").coalesced(),
            global_loads("in").bytes(p.bytes())};
  }
  static void run(const Plan& plan, Stream stream) {
    const auto [rows, repeats] = plan.problem;
    const bool aligned = reinterpret_cast<std::uintptr_t>(plan.buffers.in) % 16 == 0;
    launch(aligned ? read_rows<Config, true> : read_rows<Config, false>,
           {dim3(static_cast<unsigned>(ceil_div(rows, Config::kRows))), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, rows, static_cast<int>(repeats));
  }
};

}  // namespace cookbook::roofs
