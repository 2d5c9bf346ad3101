// SPDX-License-Identifier: MIT
// Sidebar: level 5 with rectangular tiles, more work per thread, and tiles taken in groups. Nothing
// here changes a sector or a wavefront; what changes is bytes in flight and the order in which
// device memory sees the rows.
#pragma once

#include "chapters/03_bank_conflicts/level_5_vectorised.cuh"

namespace cookbook::transpose {

template <int kTileRowsValue, int kTileColsValue, int kThreadsValue, int kMinBlocksValue,
          int kGroupValue>
struct TileShapeConfig {
  static constexpr int kTileRows = kTileRowsValue;  // of in; a multiple of 32
  static constexpr int kTileCols = kTileColsValue;  // of in; a multiple of 32
  static constexpr int kThreads = kThreadsValue;
  static constexpr int kMinBlocks = kMinBlocksValue;  // per SM: limits the registers
  static constexpr int kGroup = kGroupValue;  // tile rows that are swept together, column by column
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinBlocks)
    shaped_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const unsigned tiles_down = tiles(shape.rows, C::kTileRows);
  const unsigned tiles_across = tiles(shape.cols, C::kTileCols);
  const unsigned group = blockIdx.x / (C::kGroup * tiles_across);
  const unsigned in_group = blockIdx.x % (C::kGroup * tiles_across);
  const unsigned group_rows = min(unsigned{C::kGroup}, tiles_down - group * C::kGroup);
  const std::int64_t tile_row = group * C::kGroup + in_group % group_rows;
  const std::int64_t row0 = tile_row * C::kTileRows;
  const std::int64_t col0 = std::int64_t{in_group / group_rows} * C::kTileCols;

  constexpr int kQuadsX = C::kTileCols / 4, kQuadsY = C::kTileRows / 4;  // 4 x 4 blocks in a tile
  constexpr int kPerThread = kQuadsX * kQuadsY / C::kThreads;
  static_assert(
      kPerThread * C::kThreads == kQuadsX * kQuadsY && kQuadsX % 8 == 0 && kQuadsY % 8 == 0,
      "whole blocks per thread, whole wavefronts per row");
  __shared__ float4 tile[C::kTileCols][kQuadsY];  // (col, row / 4 ^ col / 4 % 8) of in

  float4 value[kPerThread][4] = {};
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int unit = threadIdx.x + i * C::kThreads, qx = unit % kQuadsX, qy = unit / kQuadsX;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t row = row0 + 4 * qy + k, col = col0 + 4 * qx;
      if (row < shape.rows && col < shape.cols) {
        value[i][k] = load_vector_streaming<float4>(in + row * shape.in_pitch + col);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int unit = threadIdx.x + i * C::kThreads, qx = unit % kQuadsX, qy = unit / kQuadsX;
    const float4(&v)[4] = value[i];
    tile[4 * qx + 0][qy ^ (qx % 8)] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
    tile[4 * qx + 1][qy ^ (qx % 8)] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
    tile[4 * qx + 2][qy ^ (qx % 8)] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
    tile[4 * qx + 3][qy ^ (qx % 8)] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  }
  __syncthreads();  // the tile is whole before any thread reads what others wrote
#pragma unroll
  for (int i = 0; i < 4 * kPerThread; ++i) {
    const int quad = threadIdx.x + i * C::kThreads, q = quad % kQuadsY, r = quad / kQuadsY;
    const std::int64_t row = row0 + 4 * q, col = col0 + r;
    if (row < shape.rows && col < shape.cols) {
      store_vector_streaming(out + col * shape.out_pitch + row, tile[r][q ^ (r / 4 % 8)]);
    }
  }
}

template <int kTileRows, int kTileCols, int kThreads, int kMinBlocks, int kGroup>
struct TileShape : Level {
  using Config = TileShapeConfig<kTileRows, kTileCols, kThreads, kMinBlocks, kGroup>;
  static constexpr const char* name = "tile_shape";
  static constexpr const char* changed = "tile, threads and order only";
  static constexpr const char* expect = "the same sectors and wavefronts, in another order";
  static constexpr const char* cost = "";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            shared_stores().conflict_free(), shared_loads().conflict_free()};
  }

  static void run(const Plan& plan, Stream stream) {
    if (!Vectorised::aligned(plan)) return InFlight::run(plan, stream);
    const Shape& shape = plan.problem.shape;
    launch(shaped_transpose<Config>, {tile_grid(shape, kTileRows, kTileCols), dim3(kThreads)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

template <int kThreadsYValue>
struct OddShapeConfig {
  static constexpr int kTile = 64;
  static constexpr int kThreadsX = 32;
  static constexpr int kThreadsY = kThreadsYValue;
};

/// Level 4 with other thread counts: what odd shapes fall back to.
template <int kThreadsY>
struct OddShape : Level {
  using Config = OddShapeConfig<kThreadsY>;
  static constexpr const char* name = "odd_shape";
  static constexpr const char* changed = "level 4 with another number of threads";
  static constexpr const char* expect = "the same bytes in flight by more threads or fewer";
  static constexpr const char* cost = "";
  static constexpr const char* source = __FILE__;

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(), global_stores("out").coalesced(),
            shared_stores().conflict_free(), shared_loads().conflict_free()};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(in_flight_transpose<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile),
            dim3(Config::kThreadsX, Config::kThreadsY)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
