// SPDX-License-Identifier: MIT
// Level 4: several independent loads are issued before the first value is needed.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct InFlightConfig {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;  // 2,048 threads: a full SM
  static constexpr int kLoads = 4;        // 16-byte loads in flight per thread
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    in_flight_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n,
                   Split split) {
  constexpr int kBatch = C::kThreads * C::kLoads;  // vectors per block and step
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
#pragma unroll 1
  for (std::int64_t begin = std::int64_t{blockIdx.x} * kBatch; begin < split.vectors;
       begin += std::int64_t{gridDim.x} * kBatch) {
    // [quote in_flight]
    float4 value[C::kLoads] = {};
#pragma unroll
    for (int k = 0; k < C::kLoads; ++k) {
      const std::int64_t i = begin + k * C::kThreads + threadIdx.x;
      if (i < split.vectors) value[k] = in4[i];  // [load]
    }
    // The first store waits only for the first load; the others are still in flight.
#pragma unroll
    for (int k = 0; k < C::kLoads; ++k) {
      const std::int64_t i = begin + k * C::kThreads + threadIdx.x;
      if (i < split.vectors) out4[i] = value[k];  // [store]
    }
    // [end quote]
  }
  // The elements before the first 16-byte boundary and those after the last.
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

struct InFlight : Level {
  using Config = InFlightConfig;
  static constexpr LevelText text{
      .name = "in_flight",
      .changed = "4 independent 16-byte loads before the first store",
      .expect =
          "no gain: at full occupancy level 3 has enough in flight, and the window grows fourfold",
      .cost = "12 more registers",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").on("load").sectors_per_request(16),
            global_loads("in").on("load").coalesced(), global_stores("out").coalesced(),
            global_loads("in").on("load").requests(static_cast<double>(p.n / 128)),
            at_least_previous(0.95,
                              "occupancy alone had enough in flight; more only widens the window")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks =
        resident_blocks(ceil_div(n, 4 * Config::kThreads * Config::kLoads), Config::kBlocksPerSm);
    launch(in_flight_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
