// SPDX-License-Identifier: MIT
// Level 2: reduce, then scan. The sums of the tiles come first, so that the result is written once;
// tiles are scanned in registers by shuffles.
#pragma once

#include "problem.hpp"
#include "tile_scan.cuh"

namespace cookbook::scan {

/// sums[tile] = the sum of the tile.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tile_sums(const float* __restrict__ in, float* __restrict__ sums, std::int64_t n) {
  __shared__ float scratch[C::kWarps];
  float values[C::kPerThread];
  load_tile<C>(in, std::int64_t{blockIdx.x} * C::kTile, n, values);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) sum += values[k];
  sum = block_sum<C::kThreads>(sum, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Scans `sums` in place. One block.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    scan_sums(float* __restrict__ sums, std::int64_t count) {
  __shared__ float totals[C::kWarps];
  float before = 0;
  for (std::int64_t begin = 0; begin < count; begin += C::kTile) {
    float values[C::kPerThread];
    load_tile<C>(sums, begin, count, values);
    const float sum = scan_tile<C>(values, totals);
    store_tile<C>(sums, begin, count, values, before);
    before += sum;
    __syncthreads();  // all threads have read `totals`
  }
}

/// Scans every tile; `sums` is scanned.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    scan_tiles(const float* __restrict__ in, float* __restrict__ out,
               const float* __restrict__ sums, std::int64_t n) {
  __shared__ float totals[C::kWarps];
  const std::int64_t begin = std::int64_t{blockIdx.x} * C::kTile;
  float values[C::kPerThread];
  load_tile<C>(in, begin, n, values);
  const float before = blockIdx.x == 0 ? 0.0f : sums[blockIdx.x - 1];
  scan_tile<C>(values, totals);
  store_tile<C>(out, begin, n, values, before);
}

struct Shuffle : Level {
  using Config = TileConfig;
  static constexpr LevelText text{
      .name = "shuffle",
      .changed = "sums of tiles first, then tiles in registers: shuffles instead of a tree",
      .expect =
          "the input is read twice, the result written once: two thirds of a copy's speed at "
          "most",
      .cost = "16 registers per thread for the tile, three launches",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory sums{};
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("in").bytes(8 * n), global_loads("in").coalesced(),
            global_stores("out").bytes(4 * n), global_stores("out").coalesced(),
            faster_than_previous(1.1)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const std::int64_t tiles = ceil_div(problem.n, std::int64_t{Config::kTile});
    return {problem, buffers, workspace<float>(tiles, "sums")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{Config::kTile});
    const LaunchConfig each{blocks_for(n, Config::kTile), dim3(Config::kThreads)};
    float* sums = plan.sums.as<float>();
    launch(tile_sums<Config>, each, stream, plan.buffers.in, sums, n);
    launch(scan_sums<Config>, {dim3(tiles > 0 ? 1 : 0), dim3(Config::kThreads)}, stream, sums,
           tiles);
    launch(scan_tiles<Config>, each, stream, plan.buffers.in, plan.buffers.out, sums, n);
  }
};

}  // namespace cookbook::scan
