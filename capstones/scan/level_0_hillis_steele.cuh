// SPDX-License-Identifier: MIT
// Level 0: Hillis and Steele's scan over all of global memory. Pass p adds the element 2^p before.
#pragma once

#include "problem.hpp"

namespace cookbook::scan {

struct HillisSteeleConfig {
  static constexpr int kThreads = 256;  // elements per block
};

/// to[i] = from[i] + from[i - distance]; a copy where there is no such element.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    hillis_steele_pass(const float* __restrict__ from, float* __restrict__ to, std::int64_t n,
                       std::int64_t distance) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i >= n) return;
  float sum = from[i];  // [own]
  if (i >= distance) sum = from[i - distance] + sum;
  to[i] = sum;  // [store]
}

struct HillisSteele : Level {
  using Config = HillisSteeleConfig;
  static constexpr LevelText text{
      .name = "hillis_steele",
      .changed = "start: log2(n) passes, one addition per element and pass",
      .expect = "each pass moves at least as much as a copy: 28 copies for 2^28 elements",
      .cost = "a second array, a kernel launch per pass",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory other{};  // passes alternate between this and `out`
  };

  /// The passes for n elements. One element takes one, which copies it.
  static int passes(std::int64_t n) {
    int count = 1;
    while ((std::int64_t{1} << count) < n) ++count;
    return count;
  }

  static Claims claims(const Problem& p) {
    const double all = 4.0 * static_cast<double>(p.n) * passes(p.n);
    return {global_loads().on("own").bytes(all), global_stores().on("store").bytes(all),
            global_stores().coalesced()};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return {problem, buffers, workspace<float>(problem.n, "other")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const int count = passes(n);
    const float* from = plan.buffers.in;
    for (int pass = 0; pass < count; ++pass) {
      // The last pass writes `out`.
      float* to = (count - 1 - pass) % 2 == 0 ? plan.buffers.out : plan.other.as<float>();
      launch(hillis_steele_pass<Config>, {blocks_for(n, Config::kThreads), dim3(Config::kThreads)},
             stream, from, to, n, std::int64_t{1} << pass);
      from = to;
    }
  }
};

}  // namespace cookbook::scan
