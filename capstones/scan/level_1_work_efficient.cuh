// SPDX-License-Identifier: MIT
// Level 1: Blelloch's work-efficient scan. Each block scans a tile in shared memory as a tree, the
// sums of the tiles are scanned in the same way, and a last kernel adds them.
#pragma once

#include "problem.hpp"

namespace cookbook::scan {

struct WorkEfficientConfig {
  static constexpr int kThreads = 512;
  static constexpr int kTile = 2 * kThreads;  // elements per block
};

/// Scans each tile of `from` by itself. `sums`: the sum of every tile; null: not needed.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tree_scan(const float* __restrict__ from, float* __restrict__ to, float* __restrict__ sums,
              std::int64_t n) {
  __shared__ float tile[C::kTile];
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * C::kTile + t, second = first + C::kThreads;
  const float own_first = first < n ? from[first] : 0.0f;
  const float own_second = second < n ? from[second] : 0.0f;
  tile[t] = own_first;
  tile[t + C::kThreads] = own_second;

  // Up: at the end of each group of 2 * step elements, the sum of the group.
  for (int step = 1; step < C::kTile; step *= 2) {
    __syncthreads();
    const int end = (t + 1) * 2 * step - 1;
    if (end < C::kTile) tile[end] += tile[end - step];  // [up]
  }
  if (t == 0 && sums != nullptr) sums[blockIdx.x] = tile[C::kTile - 1];
  __syncthreads();
  if (t == 0) tile[C::kTile - 1] = 0;
  // Down: in place of each group's sum, the sum of all elements before the group.
  for (int step = C::kThreads; step > 0; step /= 2) {
    __syncthreads();
    const int end = (t + 1) * 2 * step - 1;
    if (end < C::kTile) {
      const float left = tile[end - step];  // [down]
      tile[end - step] = tile[end];
      tile[end] = left + tile[end];
    }
  }
  __syncthreads();
  if (first < n) to[first] = tile[t] + own_first;  // [store]
  if (second < n) to[second] = tile[t + C::kThreads] + own_second;
}

/// Adds to every tile the sum of the tiles before it; `sums` is scanned.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    add_sums(float* __restrict__ out, const float* __restrict__ sums, std::int64_t n) {
  if (blockIdx.x == 0) return;
  const float before = sums[blockIdx.x - 1];
  const std::int64_t first = std::int64_t{blockIdx.x} * C::kTile + threadIdx.x;
  for (std::int64_t i = first; i < first + C::kTile && i < n; i += C::kThreads) {
    out[i] = before + out[i];  // [add]
  }
}

struct WorkEfficient : Level {
  using Config = WorkEfficientConfig;
  static constexpr LevelText text{
      .name = "work_efficient",
      .changed = "a tree per tile in shared memory: 2 n additions instead of n log2(n)",
      .expect =
          "n elements are read twice and written twice: half the speed of a copy at most. "
          "Strides of powers of two conflict in shared memory",
      .cost = "4 KB of shared memory per block, 20 barriers, two passes over the result",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    std::vector<DeviceMemory> sums{};  // of the tiles, of the tiles of their sums ...
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("in").bytes(4 * n), global_loads("in").coalesced(),
            global_stores("out").bytes(8 * n - 4.0 * Config::kTile),
            shared_loads().on("up").wavefronts_over_ideal(2, Relation::at_least),
            faster_than_previous(4)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    Plan plan{problem, buffers};
    for (std::int64_t count = problem.n; count > Config::kTile;) {
      count = ceil_div(count, std::int64_t{Config::kTile});
      plan.sums.push_back(workspace<float>(count, "sums"));
    }
    return plan;
  }

  static void run(const Plan& plan, Stream stream) {
    scan_from(plan, 0, plan.buffers.in, plan.buffers.out, plan.problem.n, stream);
  }

 private:
  static void scan_from(const Plan& plan, std::size_t depth, const float* from, float* to,
                        std::int64_t n, Stream stream) {
    const LaunchConfig tiles{blocks_for(n, Config::kTile), dim3(Config::kThreads)};
    const bool last = depth == plan.sums.size();  // a single tile
    float* sums = last ? nullptr : plan.sums[depth].as<float>();
    launch(tree_scan<Config>, tiles, stream, from, to, sums, n);
    if (last) return;
    scan_from(plan, depth + 1, sums, sums, ceil_div(n, std::int64_t{Config::kTile}), stream);
    launch(add_sums<Config>, tiles, stream, to, sums, n);
  }
};

}  // namespace cookbook::scan
