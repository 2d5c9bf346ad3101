// SPDX-License-Identifier: MIT
// Level 3: 16 bytes per load and per store; elements that do not fill a vector are copied singly.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

struct VectorisedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerSm = 8;  // 2,048 threads: a full SM
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    vectorised_copy(const float* __restrict__ in, float* __restrict__ out, std::int64_t n,
                    Split split) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * C::kThreads;
  const float4* in4 = reinterpret_cast<const float4*>(in + split.head);
  float4* out4 = reinterpret_cast<float4*>(out + split.head);
#pragma unroll 1
  // [quote vectorised]
  for (std::int64_t i = thread; i < split.vectors; i += threads) {
    const float4 value = in4[i];  // [load]
    out4[i] = value;              // [store]
  }
  // [end quote]
  // The elements before the first 16-byte boundary and those after the last.
  for (std::int64_t i = thread; i < n - 4 * split.vectors; i += threads) {
    const std::int64_t j = i < split.head ? i : i + 4 * split.vectors;
    out[j] = in[j];
  }
}

struct Vectorised : Level {
  using Config = VectorisedConfig;
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "float4: 16 bytes per load and store",
      .expect =
          "a quarter of the instructions and four times the bytes in flight: 1.3 times or more",
      .cost = "3 more registers; a head and a tail of single elements",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").on("load").sectors_per_request(16),
            global_loads("in").on("load").coalesced(), global_stores("out").coalesced(),
            global_loads("in").on("load").requests(static_cast<double>(p.n / 128)),
            faster_than_previous(1.1)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const unsigned blocks =
        resident_blocks(ceil_div(n, 4 * Config::kThreads), Config::kBlocksPerSm);
    launch(vectorised_copy<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, n, split_for_vectors(plan.buffers, n));
  }
};

}  // namespace cookbook::coalescing
