// SPDX-License-Identifier: MIT
// fp64 fused multiply-adds on registers: as level_fma.cuh, with half as many chains of twice the
// width.
#pragma once

#include "chapters/00_roofs/types.hpp"

namespace cookbook::roofs {

struct Fma64Config {
  static constexpr int kThreads = 256;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    fma64_chains(const double* __restrict__ a, double* __restrict__ out, int repeats) {
  double x[Fma64Problem::kChains];
  const double factor = a[threadIdx.x];
#pragma unroll
  for (int chain = 0; chain < Fma64Problem::kChains; ++chain) x[chain] = chain;
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int chain = 0; chain < Fma64Problem::kChains; ++chain) {
      x[chain] = fma(x[chain], factor, 0.5);
    }
  }
  double sum = 0;
#pragma unroll
  for (int chain = 0; chain < Fma64Problem::kChains; ++chain) sum += x[chain];
  out[blockIdx.x * C::kThreads + threadIdx.x] = sum;
}

struct Fma64 : LevelOf<Fma64Problem, Fma64Buffers> {
  using Config = Fma64Config;
  static constexpr LevelText text{
      .name = "fma64",
      .changed = "8 independent fp64 FMA chains per thread, no memory",
      .expect = "half of fp32 on A100, H100 and H200; 1/32 or 1/64 on most other GPUs",
      .cost = "25 registers",
  };
  static Claims claims(const Problem& p) {
    return {global_loads("a").bytes(p.bytes()), global_stores("out").coalesced()};
  }
  static void run(const Plan& plan, Stream stream) {
    launch(fma64_chains<Config>,
           {dim3(static_cast<unsigned>(plan.problem.blocks)), dim3(Config::kThreads)}, stream,
           plan.buffers.a, plan.buffers.out, static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
