// SPDX-License-Identifier: MIT
// Sidebar: levels 5 and 6 with rectangular tiles, other numbers of threads, and other raster
// orders. The wavefronts stay the same. What changes is the number of bytes in flight and the order
// in which device memory sees the rows. Two ladders use this file: `tile_shape` and `odd_shapes`.
#pragma once

#include "chapters/03_bank_conflicts/level_5_vectorised.cuh"
#include "chapters/03_bank_conflicts/level_6_aligned.cuh"

namespace cookbook::transpose {

/// The tile of this block. C::kGroup is the group size: that many rows of tiles are traversed
/// column by column. 1 follows the rows of `in`; a number past all rows of tiles follows the rows
/// of `out`.
template <class C>
__device__ __forceinline__ Origin grouped_tile(unsigned tiles_down, unsigned tiles_across) {
  const unsigned group = blockIdx.x / (C::kGroup * tiles_across);
  const unsigned in_group = blockIdx.x % (C::kGroup * tiles_across);
  const unsigned group_rows = min(unsigned{C::kGroup}, tiles_down - group * C::kGroup);
  const std::int64_t tile_row = group * C::kGroup + in_group % group_rows;
  return {tile_row * C::kTileRows, std::int64_t{in_group / group_rows} * C::kTileCols};
}

template <int kTileRowsValue, int kTileColsValue, int kThreadsValue, int kMinBlocksValue,
          int kGroupValue, bool kStreamingValue>
struct TileShapeConfig {
  static constexpr int kTileRows = kTileRowsValue;  // of in; a multiple of 32
  static constexpr int kTileCols = kTileColsValue;  // of in; a multiple of 32
  static constexpr int kThreads = kThreadsValue;
  static constexpr int kMinBlocks = kMinBlocksValue;  // per SM: limits the registers
  static constexpr int kGroup = kGroupValue;
  static constexpr bool kStreaming = kStreamingValue;  // cache hints as in level 5 of chapter 1
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kMinBlocks)
    shaped_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] =
      grouped_tile<C>(tiles(shape.rows, C::kTileRows), tiles(shape.cols, C::kTileCols));

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
        const float* from = in + row * shape.in_pitch + col;
        value[i][k] =
            C::kStreaming ? load_vector_streaming<float4>(from) : load_vector<float4>(from);
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
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int i = 0; i < 4 * kPerThread; ++i) {
    const int quad = threadIdx.x + i * C::kThreads, q = quad % kQuadsY, r = quad / kQuadsY;
    const std::int64_t row = row0 + 4 * q, col = col0 + r;
    if (row < shape.rows && col < shape.cols) {
      auto* to = reinterpret_cast<float4*>(out + col * shape.out_pitch + row);
      if constexpr (C::kStreaming) {
        store_vector_streaming(to, tile[r][q ^ (r / 4 % 8)]);
      } else {
        *to = tile[r][q ^ (r / 4 % 8)];  // not store_vector: see level 5
      }
    }
  }
}

/// Level 5 with one shape.
template <int kTileRows, int kTileCols, int kThreads, int kMinBlocks, int kGroup = 1,
          bool kStreaming = false>
struct TileShape : Level {
  using Config = TileShapeConfig<kTileRows, kTileCols, kThreads, kMinBlocks, kGroup, kStreaming>;
  static constexpr LevelText text{
      .name = "tile_shape",
      .changed = "tile, threads and order only",
      .expect = "the same sectors and wavefronts, in another order",
  };

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

template <class Aligned, int kGroupValue>
struct GroupedConfig : Aligned {
  static constexpr int kGroup = kGroupValue;
};

template <class C>
__global__ void __launch_bounds__(C::kThreadsX* C::kThreadsY, C::kMinBlocks)
    grouped_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = grouped_tile<C>(tiles(shape.rows + C::kLine - 1, C::kTileRows),
                                            tiles(shape.cols, C::kTileCols));
  __shared__ float tile[C::kTileRows][C::kTileCols];  // as in level 6
  if (row0 + 1 >= C::kLine && row0 + C::kTileRows <= shape.rows &&
      col0 + C::kTileCols <= shape.cols) {
    transpose_aligned_tile<C, true>(in, out, shape, row0, col0, tile);
  } else {
    transpose_aligned_tile<C, false>(in, out, shape, row0, col0, tile);
  }
}

/// Level 6 (or, with kLine = 1, level 4) with one shape.
template <int kTileRows, int kTileCols, int kThreadsY, int kLine, int kMinBlocks, int kGroup = 1>
struct Words : Level {
  using Config =
      GroupedConfig<AlignedConfig<kLine, kTileRows, kTileCols, kThreadsY, kMinBlocks>, kGroup>;
  static constexpr LevelText text{
      .name = "words",
      .changed = "tile, threads, boundary and order only",
      .expect = "the same wavefronts, by more threads or in another order",
  };

  static Claims claims(const Problem& p) {
    Claims claims = {shared_stores().conflict_free(), shared_loads().conflict_free()};
    if (kLine % 8 == 0 || p.shape.out_pitch % 8 == 0) {
      claims.push_back(global_stores("out").coalesced());
    }
    return claims;
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(grouped_transpose<Config>,
           {aligned_grid<Config>(shape), dim3(Config::kThreadsX, Config::kThreadsY)}, stream,
           plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::transpose
