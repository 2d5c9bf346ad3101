// SPDX-License-Identifier: MIT
// Fused multiply-adds on registers: 16 independent chains per thread hide their latency.
#pragma once

#include "chapters/00_roofs/problem.hpp"

namespace cookbook::roofs {

template <class ProblemValue>
struct FmaConfig {
  using Problem = ProblemValue;
  using T = typename Problem::Element;
  static constexpr int kThreads = 256;
  static constexpr int kChains = Problem::kChains;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    fma_chains(const typename C::T* __restrict__ a, typename C::T* __restrict__ out, int repeats) {
  using T = typename C::T;
  T x[C::kChains];
  const T factor = a[threadIdx.x];
#pragma unroll
  for (int chain = 0; chain < C::kChains; ++chain) x[chain] = static_cast<T>(chain);
    // [quote fma]
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int chain = 0; chain < C::kChains; ++chain) {
      x[chain] = fma(x[chain], factor, T{0.5});
    }
  }
  // [end quote]
  T sum = 0;
#pragma unroll
  for (int chain = 0; chain < C::kChains; ++chain) sum += x[chain];
  out[blockIdx.x * C::kThreads + threadIdx.x] = sum;
}

/// Everything but the level's text.
template <class P>
struct FmaLevel : LevelOf<P, FmaBuffers<typename P::Element>> {
  using Config = FmaConfig<P>;
  using Plan = typename LevelOf<P, FmaBuffers<typename P::Element>>::Plan;
  static Claims claims(const P& p) {
    return {global_loads("a").bytes(p.bytes()), global_stores("out").coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    launch(fma_chains<Config>,
           {dim3(static_cast<unsigned>(plan.problem.blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.a, plan.buffers.out, static_cast<int>(plan.problem.repeats));
  }
};

struct Fma : FmaLevel<FmaProblem> {
  static constexpr LevelText text{
      .name = "fma",
      .changed = "16 independent FMA chains per thread, no memory",
      .expect = "two FLOPs per clock on each of an SM's FP32 lanes",
      .cost = "17 registers",
  };
};

}  // namespace cookbook::roofs
