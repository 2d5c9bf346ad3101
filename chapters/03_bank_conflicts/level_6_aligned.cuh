// SPDX-License-Identifier: MIT
// Level 6: every store fills whole lines, whatever the pitch. For each output row the window of the
// tile is shifted (it slides) back to the previous line boundary.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <int kLineValue, int kTileRowsValue, int kTileColsValue, int kThreadsYValue,
          int kMinBlocksValue>
struct AlignedConfig {
  static constexpr int kTileRows = kTileRowsValue;  // a block transposes kTileRows x kTileCols
  static constexpr int kTileCols = kTileColsValue;  // elements of in
  static constexpr int kThreadsX = 32;              // with kThreadsX x kThreadsY threads
  static constexpr int kThreadsY = kThreadsYValue;
  static constexpr int kMinBlocks = kMinBlocksValue;  // per SM: limits the registers
  static constexpr int kLine = kLineValue;  // windows start at multiples of kLine elements
};

/// Elements from the last line boundary to the start of row `col` of `out`. That row's windows of
/// kTileRows elements are shifted back by this number, so they begin and end on boundaries. Only
/// the lowest bits of the address matter, so 32-bit arithmetic suffices.
template <class C>
__device__ __forceinline__ int slide(const float* out, const Shape& shape, std::int64_t col) {
  static_assert(C::kTileRows % C::kLine == 0 && (C::kTileRows & (C::kTileRows - 1)) == 0,
                "windows are whole lines, and both are powers of two");
  const auto base = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(out) / sizeof(float));
  const auto pitch = static_cast<unsigned>(shape.out_pitch);
  return static_cast<int>((base + static_cast<unsigned>(col) * pitch) % C::kLine);
}

// kWhole: the tile lies within the matrix for every shift of its columns. Pointers are incremented
// row by row: a multiplication before the first load would delay that load.
template <class C, bool kWhole>
__device__ __forceinline__ void transpose_aligned_tile(const float* __restrict__ in,
                                                       float* __restrict__ out, const Shape& shape,
                                                       std::int64_t row0, std::int64_t col0,
                                                       float (&tile)[C::kTileRows][C::kTileCols]) {
  constexpr int kRows = C::kTileRows / C::kThreadsY, kCols = C::kTileCols / C::kThreadsX;
  const int tx = threadIdx.x, ty = threadIdx.y;
  // What exists: rows top <= row < bottom, counted from row0, and columns col < right, from col0.
  const int top = row0 == 0 ? 0 : -C::kTileRows;
  const int bottom = static_cast<int>(min(shape.rows - row0, std::int64_t{C::kTileRows}));
  const int right = static_cast<int>(min(shape.cols - col0, std::int64_t{C::kTileCols}));
  const float* from = in + (row0 + ty) * shape.in_pitch + col0 + tx;
  const std::int64_t one_tile = C::kTileRows * shape.in_pitch;  // between the two rows of an entry
  int slides[kCols];                                            // shifts of this thread's columns
#pragma unroll
  for (int i = 0; i < kCols; ++i) slides[i] = slide<C>(out, shape, col0 + tx + i * C::kThreadsX);
  float value[kRows][kCols];  // (rows, columns) per thread
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    const int y = ty + j * C::kThreadsY;
    // A column shifted by s needs rows row0 - s ...; its last s entries hold the rows above. Most
    // entries are never among the last kLine - 1, and the compiler can prove that.
    const bool may_be_above = (j + 1) * C::kThreadsY + C::kLine - 2 >= C::kTileRows;
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      // [quote aligned]
      const bool above = may_be_above && y + slides[i] >= C::kTileRows;
      const int row = y - (above ? C::kTileRows : 0), col = tx + i * C::kThreadsX;
      const bool inside = kWhole || (row >= top && row < bottom && col < right);
      value[j][i] = inside ? from[i * C::kThreadsX - (above ? one_tile : 0)] : 0.0f;
      // [end quote]
    }
    from += C::kThreadsY * shape.in_pitch;
  }
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const int y = ty + j * C::kThreadsY, x = tx + i * C::kThreadsX;
      tile[y][x ^ (y & 31)] = value[j][i];
    }
  }
  __syncthreads();  // the tile is complete before any thread reads it
  float* to = out + (col0 + ty) * shape.out_pitch + row0 + tx;
#pragma unroll
  for (int j = 0; j < C::kTileCols / C::kThreadsY; ++j) {
    const int y = ty + j * C::kThreadsY;
    const int s = slide<C>(out, shape, col0 + y);  // the same for all lanes
#pragma unroll
    for (int i = 0; i < C::kTileRows / C::kThreadsX; ++i) {
      // [quote window]
      const int x = tx + i * C::kThreadsX, slot = (x - s) & (C::kTileRows - 1);
      const bool inside = kWhole || (x - s >= top && x - s < bottom && y < right);
      if (inside) to[i * C::kThreadsX - s] = tile[slot][y ^ (slot & 31)];
      // [end quote]
    }
    to += C::kThreadsY * shape.out_pitch;
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreadsX* C::kThreadsY, C::kMinBlocks)
    aligned_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTileRows, C::kTileCols);

  // (row % kTileRows, col ^ row % 32) of in; word (r, c) in bank c XOR r
  __shared__ float tile[C::kTileRows][C::kTileCols];

  if (row0 + 1 >= C::kLine && row0 + C::kTileRows <= shape.rows &&
      col0 + C::kTileCols <= shape.cols) {
    transpose_aligned_tile<C, true>(in, out, shape, row0, col0, tile);
  } else {
    transpose_aligned_tile<C, false>(in, out, shape, row0, col0, tile);
  }
}

/// One block per tile. The last windows of a row may end kLine - 1 elements early: hence the sum.
template <class C>
dim3 aligned_grid(const Shape& shape) {
  return dim3(tiles(shape.rows == 0 ? 0 : shape.rows + C::kLine - 1, C::kTileRows) *
              tiles(shape.cols, C::kTileCols));
}

struct Aligned : Level {
  using Config = AlignedConfig<32, 128, 64, 16, 3>;  // lines of 128 bytes
  using OnLines = AlignedConfig<1, 64, 64, 16, 3>;   // level 4: no shift
  static constexpr LevelText text{
      .name = "aligned",
      .changed = "each row of out starts its windows on a line boundary",
      .expect =
          "odd pitches: no sector is written in two parts by two blocks. Even ones: as level 4",
      .cost = "some loads need one of two rows of in; 4-byte loads for any shape",
  };

  static Claims claims(const Problem& p) {
    Claims claims = {global_stores("out").coalesced(), shared_stores().conflict_free(),
                     shared_loads().conflict_free(), fraction_of_roof(0.85)};
    if (p.shape.out_pitch % 8 == 0) {
      claims.push_back(global_loads("in").coalesced());
      claims.push_back(at_least_previous(0.96, "rows that start on lines need no sliding"));
    } else {
      claims.push_back(faster_than_previous(1.2, "where rows start inside a sector"));
    }
    return claims;
  }

  /// Whether every row of `out` starts on a line boundary without a shift.
  static bool on_lines(const Plan& plan) {
    return reinterpret_cast<std::uintptr_t>(plan.buffers.out) % 128 == 0 &&
           plan.problem.shape.out_pitch % 32 == 0;
  }

  template <class C>
  static void run_with(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(aligned_transpose<C>, {aligned_grid<C>(shape), dim3(C::kThreadsX, C::kThreadsY)}, stream,
           plan.buffers.in, plan.buffers.out, shape);
  }

  static void run(const Plan& plan, Stream stream) {
    on_lines(plan) ? run_with<OnLines>(plan, stream) : run_with<Config>(plan, stream);
  }
};

}  // namespace cookbook::transpose
