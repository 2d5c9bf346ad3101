// SPDX-License-Identifier: MIT
// Level 5: every byte is used once, so no cache has to keep it.
#pragma once

#include "chapters/01_coalescing/problem.hpp"
#include "common/device/vector.cuh"

namespace cookbook::coalescing {

struct StreamingConfig {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;  // 2,048 threads: a full SM
  static constexpr int kLoads = 4;        // 16-byte loads in flight per thread
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    streaming_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n,
                   Split split) {
  constexpr int kBatch = C::kThreads * C::kLoads;  // vectors per block and step
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
#pragma unroll 1
  for (std::int64_t begin = std::int64_t{blockIdx.x} * kBatch; begin < split.vectors;
       begin += std::int64_t{gridDim.x} * kBatch) {
    float4 value[C::kLoads] = {};
#pragma unroll
    for (int k = 0; k < C::kLoads; ++k) {
      const std::int64_t i = begin + k * C::kThreads + threadIdx.x;
      // [quote streaming]
      if (i < split.vectors) value[k] = load_vector_streaming<float4>(in4 + i);  // [load]
      // [end quote]
    }
    // The first store waits only for the first load; the others are still in flight.
#pragma unroll
    for (int k = 0; k < C::kLoads; ++k) {
      const std::int64_t i = begin + k * C::kThreads + threadIdx.x;
      if (i < split.vectors) store_vector_streaming(out4 + i, value[k]);  // [store]
    }
  }
  // The elements before the first 16-byte boundary and those after the last.
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

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
    launch(streaming_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
