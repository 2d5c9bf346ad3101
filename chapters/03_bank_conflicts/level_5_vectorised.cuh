// SPDX-License-Identifier: MIT
// Level 5: every access moves 16 bytes. 4 x 4 blocks are transposed in registers, the tile of
// blocks in shared memory.
#pragma once

#include "chapters/03_bank_conflicts/level_4_in_flight.cuh"
#include "common/device/vector.cuh"

namespace cookbook::transpose {

struct VectorisedConfig {
  static constexpr int kTile = 64;      // a block transposes kTile x kTile elements
  static constexpr int kThreads = 256;  // one 4 x 4 block each
};

// Needs rows and columns in multiples of 4, and every row of `in` and `out` 16-byte aligned.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    vectorised_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);

  constexpr int kQuads = C::kTile / 4;  // 16-byte quads in a row of the tile
  static_assert(kQuads * kQuads == C::kThreads, "one 4 x 4 block per thread");
  // The transposed tile: quad q of row r is at column q XOR (r / 4) % 8. The eight lanes of a
  // wavefront of 8 quads access 8 different columns both ways: r = 4 lane + k in stores, q = lane
  // in loads.
  __shared__ float4 tile[C::kTile][kQuads];  // (col, row / 4) of in

  const int qx = threadIdx.x % kQuads, qy = threadIdx.x / kQuads;
  float4 value[4] = {};  // rows 4 qy + k, columns 4 qx ... of in
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t row = row0 + 4 * qy + k, col = col0 + 4 * qx;
    if (row < shape.rows && col < shape.cols) {
      value[k] = load_vector<float4>(in + row * shape.in_pitch + col);
    }
  }
  // [quote vectorised]
  // Column k of the 4 x 4 block is a quad of row 4 qx + k of the transposed tile.
  const float4(&v)[4] = value;
  tile[4 * qx + 0][qy ^ (qx % 8)] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  tile[4 * qx + 1][qy ^ (qx % 8)] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  tile[4 * qx + 2][qy ^ (qx % 8)] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  tile[4 * qx + 3][qy ^ (qx % 8)] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  // [end quote]
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int r = qy + k * kQuads;  // row of the transposed tile
    const std::int64_t row = row0 + 4 * qx, col = col0 + r;
    if (row < shape.rows && col < shape.cols) {
      // Not store_vector: the value comes directly from shared memory, and there nvcc would lose
      // the 16-byte alignment of `out` and store 4 bytes at a time.
      // [quote quad_store]
      *reinterpret_cast<float4*>(out + col * shape.out_pitch + row) = tile[r][qx ^ (r / 4 % 8)];
      // [end quote]
    }
  }
}

struct Vectorised : Level {
  using Config = VectorisedConfig;
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "16-byte loads and stores, through the tile as well",
      .expect =
          "a quarter of the memory instructions for the same sectors: only issue slots are saved",
      .cost = "a 4 x 4 transpose in registers; odd shapes fall back to level 4",
  };

  static Claims claims(const Problem& p) {
    const double quads = static_cast<double>(p.shape.rows * p.shape.cols / 4);
    return {global_loads("in").coalesced(),
            global_stores("out").coalesced(),
            global_loads("in").requests(quads / 32),
            global_stores("out").requests(quads / 32),
            shared_stores().conflict_free(),
            shared_loads().conflict_free(),
            at_least_previous(0.96, "instructions were not what limited level 4")};
  }

  /// Whether every 16-byte access is aligned and none crosses an edge.
  static bool aligned(const Plan& plan) {
    const Shape& s = plan.problem.shape;
    const auto addresses = reinterpret_cast<std::uintptr_t>(plan.buffers.in) |
                           reinterpret_cast<std::uintptr_t>(plan.buffers.out);
    return addresses % 16 == 0 && (s.rows | s.cols | s.in_pitch | s.out_pitch) % 4 == 0;
  }

  static void run(const Plan& plan, Stream stream) {
    if (!aligned(plan)) return InFlight::run(plan, stream);
    const Shape& shape = plan.problem.shape;
    launch(vectorised_transpose<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
