// SPDX-License-Identifier: MIT
// Fused multiply-adds on registers: 16 independent chains per thread hide their latency.
#pragma once

#include "chapters/00_roofs/problem.hpp"

namespace cookbook::roofs {

struct FmaConfig {
  static constexpr int kThreads = 256;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    fma_chains(const float* __restrict__ a, float* __restrict__ out, int repeats) {
  float x[FmaProblem::kChains];
  const float factor = a[threadIdx.x];
#pragma unroll
  for (int chain = 0; chain < FmaProblem::kChains; ++chain) x[chain] = static_cast<float>(chain);
    // [quote fma]
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int chain = 0; chain < FmaProblem::kChains; ++chain) {
      x[chain] = __fmaf_rn(x[chain], factor, 0.5f);
    }
  }
  // [end quote]
  float sum = 0;
#pragma unroll
  for (int chain = 0; chain < FmaProblem::kChains; ++chain) sum += x[chain];
  out[blockIdx.x * C::kThreads + threadIdx.x] = sum;
}

struct Fma : LevelOf<FmaProblem, FmaBuffers> {
  using Config = FmaConfig;
  static constexpr LevelText text{
      .name = "fma",
      .changed = "16 independent FMA chains per thread, no memory",
      .expect = "two FLOPs per clock on each of an SM's FP32 lanes",
      .cost = "17 registers",
  };
  static Claims claims(const Problem& p) {
    return {global_loads("a").bytes(p.bytes()), global_stores("out").coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    launch(fma_chains<Config>,
           {dim3(static_cast<unsigned>(plan.problem.blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.a, plan.buffers.out, static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
