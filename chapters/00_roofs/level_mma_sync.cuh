// SPDX-License-Identifier: MIT
// mma.sync on operands that stay in registers: the rate of the tensor cores per warp.
#pragma once

#include "chapters/00_roofs/problem.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/mma.cuh"

namespace cookbook::roofs {

struct MmaConfig {
  static constexpr int kThreads = 128;
  static constexpr int kRowTiles = MmaProblem::kM / 16;
  static constexpr int kColTiles = MmaProblem::kN / 8;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    mma_registers(const bf16* __restrict__ a, const bf16* __restrict__ b, float* __restrict__ out,
                  std::int64_t units, int repeats) {
  const int lane_idx = threadIdx.x % 32;
  const int quad = lane_idx / 4;      // row of the fragments, modulo 8
  const int pair = lane_idx % 4 * 2;  // first of two neighbouring columns
  const std::int64_t warp = (std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x) / 32;
  if (warp >= units) return;

  auto two = [](const bf16* at) {
    return static_cast<uint32_t>(__bfloat16_as_ushort(at[0])) |
           static_cast<uint32_t>(__bfloat16_as_ushort(at[1])) << 16;
  };
  uint32_t a_frag[C::kRowTiles][4];  // (16 x 16) per tile and warp
  uint32_t b_frag[C::kColTiles][2];  // (16 x 8)
  float acc[C::kRowTiles][C::kColTiles][4] = {};
#pragma unroll
  for (int i = 0; i < C::kRowTiles; ++i) {
    const bf16* at = a + (16 * i + quad) * MmaProblem::kK + pair;
    a_frag[i][0] = two(at);
    a_frag[i][1] = two(at + 8 * MmaProblem::kK);
    a_frag[i][2] = two(at + 8);
    a_frag[i][3] = two(at + 8 * MmaProblem::kK + 8);
  }
#pragma unroll
  for (int j = 0; j < C::kColTiles; ++j) {
    const bf16* at = b + (8 * j + quad) * MmaProblem::kK + pair;
    b_frag[j][0] = two(at);
    b_frag[j][1] = two(at + 8);
  }
  // [quote mma_sync]
#pragma unroll 2
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int i = 0; i < C::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < C::kColTiles; ++j) {
        mma_m16n8k16<bf16>(acc[i][j], a_frag[i], b_frag[j]);
      }
    }
  }
  // [end quote]
#pragma unroll
  for (int i = 0; i < C::kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < C::kColTiles; ++j) {
      float* at = out + (warp * MmaProblem::kM + 16 * i + quad) * MmaProblem::kN + 8 * j + pair;
      at[0] = acc[i][j][0];
      at[1] = acc[i][j][1];
      at[8 * MmaProblem::kN] = acc[i][j][2];
      at[8 * MmaProblem::kN + 1] = acc[i][j][3];
    }
  }
}

struct Mma : LevelOf<MmaProblem, ProductBuffers> {
  using Config = MmaConfig;
  static constexpr LevelText text{
      .name = "mma_sync",
      .changed = "m16n8k16 on bf16 fragments that never leave registers",
      .expect = "less than wgmma: a warp's operands pass through registers",
      .cost = "88 registers of fragments and accumulators",
  };
  static Support supports(const Problem&, const DeviceInfo& device) {
    return device.cc() >= 80 ? Support::yes() : Support::no("bf16 mma.sync needs sm_80");
  }
  static Claims claims(const Problem& p) { return {global_stores("out").bytes(p.bytes())}; }
  static void run(const Plan& plan, Stream stream) {
    const std::int64_t warps = Config::kThreads / 32;
    launch(
        mma_registers<Config>,
        {dim3(static_cast<unsigned>(ceil_div(plan.problem.units, warps))), dim3(Config::kThreads)},
        stream, plan.buffers.a, plan.buffers.b, plan.buffers.out, plan.problem.units,
        static_cast<int>(plan.problem.repeats));
  }
};

}  // namespace cookbook::roofs
