// SPDX-License-Identifier: MIT
// Level 5: every byte is used once, so no cache has to keep it. The kernel is level 4's.
#pragma once

#include "chapters/01_coalescing/level_4_in_flight.cuh"
#include "common/device/vector.cuh"

namespace cookbook::coalescing {

struct StreamingConfig : InFlightConfig {
  // [quote streaming]
  __device__ __forceinline__ static float4 load(const float4* from) {
    return load_vector_streaming<float4>(from);  // [load]
  }
  __device__ __forceinline__ static void store(float4* to, float4 value) {
    store_vector_streaming(to, value);  // [store]
  }
  // [end quote]
};

struct Streaming : Level {
  using Config = StreamingConfig;
  static constexpr LevelText text{
      .name = "streaming",
      .changed = "loads allocate no line in L1, L2 evicts stored lines first",
      .expect =
          "the same or a little less: nothing is reused, and a cache that evicts early merges "
          "fewer writes",
      .cost = "wrong if a kernel reads the data again soon",
  };

  static Claims claims(const Problem& p) {
    return {
        global_loads("in").on("load").sectors_per_request(16),
        global_loads("in").on("load").coalesced(), global_stores("out").coalesced(),
        global_loads("in").on("load").requests(static_cast<double>(p.n / 128)),
        at_least_previous(0.95, "hints cannot add bandwidth, they only stop caches from working")};
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
