// SPDX-License-Identifier: MIT
// Level 2: a lane loads eight neighbouring elements with one instruction of 16 bytes.
#pragma once

#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "problem.hpp"

namespace cookbook::gemv {

using Eight = Pack<bf16, 8>;

/// Eight elements in eight loads, from any address.
__device__ __forceinline__ Eight load_singly(const bf16* at) {
  Eight eight;
#pragma unroll
  for (int i = 0; i < 8; ++i) eight[i] = at[i];
  return eight;
}

/// Eight elements of A, each of which is read once. kAligned: `at` is on a 16-byte boundary.
template <bool kAligned>
__device__ __forceinline__ Eight load_a(const bf16* at) {
  if constexpr (kAligned) {
    return load_vector_streaming<Eight>(at);
  } else {
    return load_singly(at);
  }
}

/// Eight elements of x, which every row needs: they may stay in L1.
template <bool kAligned>
__device__ __forceinline__ Eight load_x(const bf16* at) {
  if constexpr (kAligned) {
    return load_vector<Eight>(at);
  } else {
    return load_singly(at);
  }
}

/// `sum` plus the eight products.
__device__ __forceinline__ float add_products(const Eight& a, const Eight& x, float sum) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += __bfloat162float(a[i]) * __bfloat162float(x[i]);
  return sum;
}

/// Whether every row of A, and x, begin on 16-byte boundaries.
inline bool is_aligned(const Shape& shape, const Buffers& at) {
  const auto on_boundary = [](const bf16* p) {
    return reinterpret_cast<std::uintptr_t>(p) % sizeof(Eight) == 0;
  };
  return on_boundary(at.a) && on_boundary(at.x) && shape.pitch % 8 == 0;
}

struct VectorisedConfig {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / kWarpSize;  // rows per block
};

template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads)
    vectorised_gemv(const bf16* __restrict__ a, const bf16* __restrict__ x, float* __restrict__ y,
                    Shape shape) {
  const std::int64_t row = std::int64_t{blockIdx.x} * C::kWarps + warp_idx();
  if (row >= shape.m) return;
  const bf16* own = a + row * shape.pitch;
  const std::int64_t whole = shape.k / 8 * 8;
  float sum = 0;
#pragma unroll 1  // as in level 1
  for (std::int64_t col = 8 * lane_idx(); col < whole; col += 8 * kWarpSize) {
    sum = add_products(load_a<kAligned>(own + col), load_x<kAligned>(x + col), sum);
  }
  const std::int64_t last = whole + lane_idx();  // of the fewer than eight that are left
  if (last < shape.k) sum += __bfloat162float(own[last]) * __bfloat162float(x[last]);
  sum = warp_sum(sum);
  if (lane_idx() == 0) y[row] = sum;
}

struct Vectorised : Level {
  using Config = VectorisedConfig;
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "16-byte loads: eight elements per lane",
      .expect = "32 KB in flight per SM instead of 4 KB: at least three times as fast",
      .cost =
          "a second kernel for rows that are not on 16-byte boundaries: eight loads of 2 bytes "
          "there",
  };

  static Claims claims(const Problem& p) {
    const double elements = static_cast<double>(p.shape.m) * static_cast<double>(p.shape.k);
    return {global_loads("a").sectors_per_request(16), global_loads("a").coalesced(),
            global_loads("a").requests(elements / 256), global_loads("x").requests(elements / 256),
            faster_than_previous(2.75)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(is_aligned(shape, plan.buffers) ? vectorised_gemv<Config, true>
                                           : vectorised_gemv<Config, false>,
           {blocks_for(shape.m, Config::kWarps), dim3(Config::kThreads)}, stream, plan.buffers.a,
           plan.buffers.x, plan.buffers.y, shape);
  }
};

}  // namespace cookbook::gemv
