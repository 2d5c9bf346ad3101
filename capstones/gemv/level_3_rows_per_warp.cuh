// SPDX-License-Identifier: MIT
// Level 3: one warp computes four rows. Eight loads of A are in flight per lane, and each piece of
// x is used for all four rows.
#pragma once

#include "level_2_vectorised.cuh"

namespace cookbook::gemv {

struct RowsPerWarpConfig {
  static constexpr int kThreads = 128;
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kRows = 4;   // of a warp
  static constexpr int kSteps = 2;  // pieces of each row that are loaded before any is used
};

/// Adds the products of `kSteps` pieces of eight columns, `stride` columns apart, to the sum of
/// each row. All loads come before the first product.
template <int kSteps, bool kAligned, int kRows>
__device__ __forceinline__ void add_steps(const bf16* const (&rows)[kRows], const bf16* x,
                                          std::int64_t col, int stride, float (&sums)[kRows]) {
  Eight of_a[kSteps][kRows], of_x[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) of_a[s][r] = load_a<kAligned>(rows[r] + col + s * stride);
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) of_x[s] = load_x<kAligned>(x + col + s * stride);
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[r] = add_products(of_a[s][r], of_x[s], sums[r]);
  }
}

/// Adds to sums[r] this thread's products of row `first` + r, over the columns [begin, end): every
/// `threads`-th piece of eight columns from piece `thread` on. Below the last row the last row is
/// computed again.
template <class C, bool kAligned>
__device__ __forceinline__ void dot_rows(const bf16* a, const bf16* x, const Shape& shape,
                                         std::int64_t first, std::int64_t begin, std::int64_t end,
                                         int thread, int threads, float (&sums)[C::kRows]) {
  const bf16* rows[C::kRows];
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    rows[r] = a + (first + r < shape.m ? first + r : shape.m - 1) * shape.pitch;
  }
  const int stride = 8 * threads;
  const std::int64_t whole = begin + (end - begin) / 8 * 8;
  std::int64_t col = begin + 8 * thread;
#pragma unroll 1
  for (; col + (C::kSteps - 1) * stride < whole; col += C::kSteps * stride) {
    add_steps<C::kSteps, kAligned>(rows, x, col, stride, sums);
  }
#pragma unroll 1
  for (; col < whole; col += stride) add_steps<1, kAligned>(rows, x, col, stride, sums);
  const std::int64_t last = whole + thread;  // of the fewer than eight that are left
  if (last < end) {
#pragma unroll
    for (int r = 0; r < C::kRows; ++r) {
      sums[r] += __bfloat162float(rows[r][last]) * __bfloat162float(x[last]);
    }
  }
}

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads)
    rows_per_warp_gemv(const bf16* __restrict__ a, const bf16* __restrict__ x,
                       float* __restrict__ y, Shape shape) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * C::kWarps + warp_idx()) * C::kRows;
  if (first >= shape.m) return;
  float sums[C::kRows] = {};
  dot_rows<C, kAligned>(a, x, shape, first, 0, shape.k, lane_idx(), kWarpSize, sums);
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane_idx() == 0 && first + r < shape.m) y[first + r] = sum;
  }
}

struct RowsPerWarp : Level {
  using Config = RowsPerWarpConfig;
  static constexpr LevelText text{
      .name = "rows_per_warp",
      .changed = "four rows per warp and eight loads of A in flight per lane",
      .expect =
          "8,192 rows are 2,048 warps with 4 KB each, 62 KB in flight per SM: close to the roof. "
          "With few rows most SMs have no warp",
      .cost = "a quarter of the warps; 40 registers for the loads in flight",
  };

  static Claims claims(const Problem& p) {
    const double elements = static_cast<double>(p.shape.m) * static_cast<double>(p.shape.k);
    return {global_loads("a").sectors_per_request(16), global_loads("a").coalesced(),
            global_loads("a").requests(elements / 256),
            global_loads("x").requests(elements / (256 * Config::kRows)),
            at_least_previous(0.98, "8,192 rows keep enough loads in flight without it")};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(is_aligned(shape, plan.buffers) ? rows_per_warp_gemv<Config, true>
                                           : rows_per_warp_gemv<Config, false>,
           {blocks_for(shape.m, Config::kWarps * Config::kRows), dim3(Config::kThreads)}, stream,
           plan.buffers.a, plan.buffers.x, plan.buffers.y, shape);
  }
};

}  // namespace cookbook::gemv
