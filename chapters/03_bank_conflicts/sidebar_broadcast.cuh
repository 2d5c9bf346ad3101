// SPDX-License-Identifier: MIT
// Sidebar: c = a b for many 32 x 32 tiles. On a CPU `b[k][threadIdx.x]` would be a strided access;
// for a warp it is one row, and `a[y][k]` is one word for all lanes. Neither conflicts. Storing b
// transposed, as one would on a CPU, is what causes conflicts.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

constexpr int kProductTile = 32;

struct ProductProblem {
  std::int64_t count = 0;  // matrix multiplications

  static ProductProblem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("products take one size, count >= 0");
    return {size[0]};
  }

  std::vector<TensorSpec> tensors() const {
    const std::int64_t rows = count * kProductTile, cols = kProductTile;
    return {{"a", DType::f32, rows, cols, cols, Role::input},
            {"b", DType::f32, rows, cols, cols, Role::input},
            {"c", DType::f32, rows, cols, cols, Role::output}};
  }

  double bytes() const {
    return 3.0 * 4.0 * kProductTile * kProductTile * static_cast<double>(count);
  }
  double flops() const { return bytes() / 12.0 * 2.0 * kProductTile; }

  void reference_row(const HostTensors& tensors, const std::string&, std::int64_t row,
                     double* value, double* bound) const {
    product_row<kProductTile>(tensors["a"], tensors["b"], row, value, bound);
  }
};

struct ProductBuffers {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;

  static ProductBuffers bind(const DevicePointers& at) {
    return {at.get<const float>("a"), at.get<const float>("b"), at.get<float>("c")};
  }
};

using ProductLevel = LevelOf<ProductProblem, ProductBuffers>;

template <bool kTransposedValue>
struct ProductConfig {
  static constexpr int kTile = kProductTile;
  static constexpr int kThreadsY = 8;
  static constexpr bool kTransposed = kTransposedValue;  // b is stored as (col, k), not (k, col)
};

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    tile_product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  const std::int64_t row0 = std::int64_t{blockIdx.x} * C::kTile;
  const int x = threadIdx.x;
  __shared__ float a_tile[C::kTile][C::kTile];  // (row, k)
  __shared__ float b_tile[C::kTile][C::kTile];  // (k, col), or (col, k)
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    a_tile[y][x] = a[(row0 + y) * C::kTile + x];
    (C::kTransposed ? b_tile[x][y] : b_tile[y][x]) = b[(row0 + y) * C::kTile + x];
  }
  __syncthreads();  // both tiles are complete
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < C::kTile; ++k) {
      const float left = a_tile[y][k];                                   // [a]
      const float right = C::kTransposed ? b_tile[x][k] : b_tile[k][x];  // [b]
      sum += left * right;
    }
    c[(row0 + y) * C::kTile + x] = sum;
  }
}

template <bool kTransposed>
struct Product : ProductLevel {
  using Config = ProductConfig<kTransposed>;
  static constexpr LevelText text{
      .name = kTransposed ? "b_at_lane_k" : "b_at_k_lane",
      .changed =
          kTransposed
              ? "start: every thread reads along a row of b transposed, as one would on a CPU"
              : "b not transposed: neighbouring lanes read neighbouring words",
      .expect = kTransposed ? "32 lanes, 32 words, one bank: 32 wavefronts for each load of b"
                            : "1 wavefront each: a row for b, a broadcast for a",
      .cost = "8 KB of shared memory",
  };

  static Claims claims(const Problem&) {
    Claims claims = {
        shared_loads().on("a").wavefronts_per_request(1),
        shared_loads().on("b").wavefronts_per_request(kTransposed ? Config::kTile : 1),
    };
    if (!kTransposed) claims.push_back(faster_than_previous(1.5));
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    launch(
        tile_product<Config>,
        {dim3(static_cast<unsigned>(plan.problem.count)), dim3(Config::kTile, Config::kThreadsY)},
        stream, plan.buffers.a, plan.buffers.b, plan.buffers.c);
  }
};

}  // namespace cookbook::transpose
