// SPDX-License-Identifier: MIT
// Sidebar: a coalesced copy whose warps start kOffset elements before a 128-byte boundary.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

template <int kOffsetValue>
struct OffsetConfig {
  static constexpr int kThreads = 256;
  static constexpr int kOffset = kOffsetValue;  // elements
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    offset_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x - C::kOffset;
  if (i >= 0 && i < n) out[i] = in[i];
}

template <int kOffset>
struct Offset : Level {
  using Config = OffsetConfig<kOffset>;
  static constexpr LevelText text{
      .name = "offset",
      .changed = "every warp starts this much before a line boundary",
      .expect = "5 sectors per request instead of 4, unless the offset is whole sectors",
  };

  static Claims claims(const Problem&) {
    // The array's ends cut off the first and the last warp: hence the tolerance.
    const double sectors = kOffset % 8 == 0 ? 4 : 5;
    Claim loads = global_loads("in").sectors_per_request(sectors);
    Claim stores = global_stores("out").sectors_per_request(sectors);
    loads.tolerance = stores.tolerance = 0.01;
    return {loads, stores};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t blocks = n == 0 ? 0 : ceil_div(n + kOffset, Config::kThreads);
    launch(offset_copy<Config>, {dim3(static_cast<unsigned>(blocks)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.out, n);
  }
};

}  // namespace cookbook::coalescing
