// SPDX-License-Identifier: MIT
// Level 2: a thread computes 16 results of one column. It reads each row of its windows once, for
// all results that need it.
#pragma once

#include "level_1_halo_tile.cuh"

namespace cookbook::convolution {

/// Computes kRows results of one column and stores those of the first `rows`, at a stride of
/// `pitch`. `window`: the upper left element of the first result's window, in shared memory with a
/// row stride of kPitch elements.
template <int kRows, int kPitch>
__device__ __forceinline__ void convolve_strip(const float* window,
                                               const float (&weights)[kSide][kSide], float* out,
                                               std::int64_t pitch, int rows) {
  float sums[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    float values[kSide];
#pragma unroll
    for (int dx = 0; dx < kSide; ++dx) values[dx] = window[r * kPitch + dx];  // [window]
      // Row r is row dy of the window of result r - dy.
#pragma unroll
    for (int dy = 0; dy < kSide; ++dy) {
      if (r - dy < 0 || r - dy >= kRows) continue;
#pragma unroll
      for (int dx = 0; dx < kSide; ++dx) sums[r - dy] += weights[dy][dx] * values[dx];
    }
    const int complete = r - 2 * kRadius;
    if (complete >= 0) {
      if (complete < rows) *out = sums[complete];  // [store]
      out += pitch;
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    register_columns_convolution(const float* __restrict__ in, const float* __restrict__ filter,
                                 float* __restrict__ out, Shape shape) {
  __shared__ float halo[C::kHaloRows][C::kHaloCols];
  const unsigned across = tiles(shape.cols, C::kTileCols);
  const int row = static_cast<int>(blockIdx.x / across) * C::kTileRows;
  const int col = static_cast<int>(blockIdx.x % across) * C::kTileCols;
  load_halo<C>(halo, in, shape, row, col);
  float weights[kSide][kSide];
  load_filter(filter, weights);
  __syncthreads();
  const int own_row = static_cast<int>(threadIdx.x) / C::kTileCols * C::kStripRows;
  const int own_col = static_cast<int>(threadIdx.x) % C::kTileCols;
  if (col + own_col >= shape.cols) return;
  convolve_strip<C::kStripRows, C::kHaloCols>(
      &halo[own_row][own_col], weights, out + (row + own_row) * shape.out_pitch + col + own_col,
      shape.out_pitch, shape.rows - row - own_row);
}

/// Warp-wide shared loads of a problem whose extents are whole tiles.
template <class C>
double window_requests(const Shape& s) {
  const double per_result = kSide * (C::kStripRows + 2.0 * kRadius) / C::kStripRows;
  return per_result * s.rows * s.cols / 32;
}

struct RegisterColumns : Level {
  using Config = HaloTileConfig;
  static constexpr LevelText text{
      .name = "register_columns",
      .changed = "16 results of a column per thread: each row of the windows is read once",
      .expect =
          "6.25 shared loads per element instead of 25, so shared memory is no longer busy: what "
          "is left is the instructions that load the tile",
      .cost = "25 registers for the filter, 10 for sums and values",
  };

  static Claims claims(const Problem& p) {
    return {global_loads("in").bytes(bytes_of_halos<Config>(p.shape)),
            shared_loads().on("window").requests(window_requests<Config>(p.shape)),
            shared_loads().conflict_free(), global_stores("out").coalesced(),
            faster_than_previous(1.2)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(register_columns_convolution<Config>,
           {dim3(tile_count(shape, Config::kTileRows, Config::kTileCols)), dim3(Config::kThreads)},
           stream, plan.buffers.in, plan.buffers.filter, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::convolution
