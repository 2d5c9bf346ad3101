// SPDX-License-Identifier: MIT
// Level 4: a block computes four rows, with the columns divided among its warps. If there are few
// rows, they are divided among several blocks as well, and the block that ends last adds their
// sums.
#pragma once

#include <algorithm>

#include "level_3_rows_per_warp.cuh"

namespace cookbook::gemv {

struct SplitKConfig {
  static constexpr int kThreads = 128;
  static constexpr int kBlocksPerSm = 8;  // resident
  static constexpr int kWarps = kThreads / kWarpSize;
  static constexpr int kRows = 4;                       // of a block
  static constexpr int kSteps = 2;                      // as in level 3
  static constexpr int kRound = 8 * kThreads * kSteps;  // columns that a block loads at a time

  /// Whether this block is the last of `splits` that have called. One lane of each block calls.
  static __device__ __forceinline__ bool is_last(unsigned* counter, int /*split*/, int splits) {
    return atomicAdd(counter, 1u) == static_cast<unsigned>(splits - 1);
  }
};

/// How the columns are divided among blocks.
struct Splits {
  int count = 1;
  std::int64_t columns = 0;  // of each but the last, which may have fewer
};

/// partials[group][split][row]: sums of a split, for `splits.count` > 1. counters[group]: zero
/// before and after.
template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    split_k_gemv(const bf16* __restrict__ a, const bf16* __restrict__ x, float* __restrict__ y,
                 float* partials, unsigned* counters, Shape shape, Splits splits) {
  __shared__ float of_warps[C::kWarps][C::kRows];
  const std::int64_t group = blockIdx.x / splits.count;
  const int split = static_cast<int>(blockIdx.x % splits.count);
  const std::int64_t begin = split * splits.columns;
  const std::int64_t end = min(begin + splits.columns, shape.k);
  float sums[C::kRows] = {};
  dot_rows<C, kAligned>(a, x, shape, group * C::kRows, begin, end, static_cast<int>(threadIdx.x),
                        C::kThreads, sums);
  const int lane = lane_idx();
#pragma unroll
  for (int r = 0; r < C::kRows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0) of_warps[warp_idx()][r] = sum;
  }
  __syncthreads();
  if (warp_idx() != 0) return;
  float sum = 0;  // lane r: of row r
  if (lane < C::kRows) {
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) sum += of_warps[w][lane];
  }
  if (splits.count > 1) {
    float* of_group = partials + group * splits.count * C::kRows;
    if (lane < C::kRows) {
      of_group[split * C::kRows + lane] = sum;  // [partial]
      __threadfence();
    }
    __syncwarp();
    int last = 0;
    if (lane == 0) {
      last = C::is_last(&counters[group], split, splits.count);
      __threadfence();
    }
    last = __shfl_sync(kFullWarp, last, 0);
    __syncwarp();  // passes on what lane 0 has acquired: a shuffle does not
    if (last == 0) return;
    // In the order of the splits, whichever block ended last: the same bits in every run.
    sum = 0;
    for (int i = lane; i < splits.count * C::kRows; i += kWarpSize) sum += __ldcg(&of_group[i]);
#pragma unroll
    for (int offset = kWarpSize / 2; offset >= C::kRows; offset /= 2) {
      sum += __shfl_xor_sync(kFullWarp, sum, offset);
    }
    if (lane == 0) counters[group] = 0;  // for the next run
  }
  const std::int64_t row = group * C::kRows + lane;
  if (lane < C::kRows && row < shape.m) y[row] = sum;
}

struct SplitK : Level {
  using Config = SplitKConfig;
  static constexpr LevelText text{
      .name = "split_k",
      .changed = "the columns are divided among the warps of a block and, if rows are few, blocks",
      .expect =
          "as fast as level 3 with many rows; with few rows all SMs read, so the roof is as close "
          "as with many",
      .cost = "one barrier per block; partial sums, an atomic and a fence per block if it splits",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    Splits splits;
    DeviceMemory partials{}, counters{};
  };

  static std::int64_t groups(const Shape& shape) {
    return ceil_div(shape.m, std::int64_t{Config::kRows});
  }

  /// As many splits as fill the device with resident blocks once, each of whole rounds.
  static Splits splits_of(const Shape& shape, int sm_count) {
    if (shape.m == 0 || shape.k == 0) return {1, shape.k};
    const std::int64_t resident = std::int64_t{Config::kBlocksPerSm} * sm_count;
    const std::int64_t rounds = ceil_div(shape.k, std::int64_t{Config::kRound});
    const std::int64_t wanted = std::min(rounds, ceil_div(resident, groups(shape)));
    const std::int64_t each = ceil_div(rounds, wanted);
    return {static_cast<int>(ceil_div(rounds, each)), each * Config::kRound};
  }

  static Claims claims(const Problem& p) {
    const double m = static_cast<double>(p.shape.m), k = static_cast<double>(p.shape.k);
    const Splits splits = splits_of(p.shape, device_info().sm_count);
    return {global_loads("a").sectors_per_request(16),
            global_loads("a").coalesced(),
            global_loads("a").bytes(2 * m * k),
            global_loads("x").requests(m * k / (256 * Config::kRows)),
            global_stores().on("partial").bytes(splits.count > 1 ? 4 * m * splits.count : 0),
            global_stores("y").bytes(4 * m),
            faster_than_previous(1.02),
            against_library("cuBLAS", 0.98),
            fraction_of_roof(0.81)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const Splits splits = splits_of(problem.shape, device_info().sm_count);
    const auto count = static_cast<std::size_t>(groups(problem.shape));
    Plan plan{problem, buffers, splits};
    if (splits.count > 1) {
      plan.partials = DeviceMemory(
          count * static_cast<std::size_t>(splits.count * Config::kRows) * sizeof(float),
          "partials");
      plan.counters = DeviceMemory(count * sizeof(unsigned), "counters");
      plan.counters.fill(0);
    }
    return plan;
  }

  static void run(const Plan& plan, Stream stream) { run_as<Config>(plan, stream); }

  template <class C>
  static void run_as(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    const auto blocks = static_cast<unsigned>(groups(shape) * plan.splits.count);
    launch(is_aligned(shape, plan.buffers) ? split_k_gemv<C, true> : split_k_gemv<C, false>,
           {dim3(blocks), dim3(C::kThreads)}, stream, plan.buffers.a, plan.buffers.x,
           plan.buffers.y, plan.partials.as<float>(), plan.counters.as<unsigned>(), shape,
           plan.splits);
  }
};

}  // namespace cookbook::gemv
