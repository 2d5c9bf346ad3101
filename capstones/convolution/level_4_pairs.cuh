// SPDX-License-Identifier: MIT
// Level 4: a thread computes two neighbouring columns, with loads and stores of 8 bytes. Tiles are
// twice as wide.
#pragma once

#include "common/device/vector.cuh"
#include "level_3_tma.cuh"

namespace cookbook::convolution {

struct PairsConfig {
  static constexpr int kThreads = 128;
  static constexpr int kTileRows = 32, kTileCols = 128;  // of the result
  static constexpr int kColsPerThread = 2;
  static constexpr int kThreadCols = kTileCols / kColsPerThread;  // threads across the tile
  static constexpr int kStrips = kThreads / kThreadCols;
  static constexpr int kStripRows = kTileRows / kStrips;
  static constexpr int kHaloRows = kTileRows + 2 * kRadius;
  static constexpr int kStages = 3;  // the tiles are half as high
  static constexpr int kBlocksPerSm = 3;
  static constexpr int kMargin = TmaConfig::kMargin;
  static constexpr int kBoxCols = kTileCols + 2 * kMargin;
  static_assert((kMargin - kRadius) % 2 == 0, "windows begin on 8-byte boundaries");
};

/// As convolve_strip(), of two neighbouring columns. `window` is aligned to 8 bytes. `cols`:
/// columns of the result from the first of them on. kAligned: whether both are stored at once.
template <int kRows, int kPitch, bool kAligned>
__device__ __forceinline__ void convolve_pairs(const float* window,
                                               const float (&weights)[kSide][kSide], float* out,
                                               std::int64_t pitch, int rows, int cols) {
  floatx2 sums[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows + 2 * kRadius; ++r) {
    float values[kSide + 1];
#pragma unroll
    for (int dx = 0; dx < kSide + 1; dx += 2) {
      const auto pair = load_vector<floatx2>(&window[r * kPitch + dx]);  // [window]
      values[dx] = pair[0], values[dx + 1] = pair[1];
    }
#pragma unroll
    for (int dy = 0; dy < kSide; ++dy) {
      if (r - dy < 0 || r - dy >= kRows) continue;
#pragma unroll
      for (int dx = 0; dx < kSide; ++dx) {
        sums[r - dy][0] += weights[dy][dx] * values[dx];
        sums[r - dy][1] += weights[dy][dx] * values[dx + 1];
      }
    }
    const int complete = r - 2 * kRadius;
    if (complete >= 0) {
      if (complete < rows) {
        if (kAligned && cols >= 2) {
          store_vector(out, sums[complete]);  // [store]
        } else {
          out[0] = sums[complete][0];
          if (cols >= 2) out[1] = sums[complete][1];
        }
      }
      out += pitch;
    }
  }
}

/// As tma_convolution(), of pairs. kAligned: all rows of the result begin on 8-byte boundaries.
template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    pairs_convolution(const __grid_constant__ TensorMap map, const float* __restrict__ filter,
                      float* __restrict__ out, Shape shape, unsigned count) {
  auto& smem = *dynamic_shared<TmaSmem<C>>();
  const unsigned across = tiles(shape.cols, C::kTileCols);
  const auto load = [&](unsigned tile, int stage) {  // called by one thread
    mbarrier_arrive_expect_tx(&smem.full[stage], sizeof(smem.halo[stage]));
    tma_load_2d(smem.halo[stage], &map, &smem.full[stage],
                static_cast<int>(tile % across) * C::kTileCols - C::kMargin,
                static_cast<int>(tile / across) * C::kTileRows - kRadius);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) mbarrier_init(&smem.full[s], 1);
    fence_mbarrier_init();
    for (int s = 0; s < C::kStages; ++s) {
      const unsigned tile = blockIdx.x + static_cast<unsigned>(s) * gridDim.x;
      if (tile < count) load(tile, s);
    }
  }
  float weights[kSide][kSide];
  load_filter(filter, weights);
  __syncthreads();  // the barriers are initialised

  const int own_row = static_cast<int>(threadIdx.x) / C::kThreadCols * C::kStripRows;
  const int own_col = static_cast<int>(threadIdx.x) % C::kThreadCols * C::kColsPerThread;
  int stage = 0;
  unsigned parity = 0;
#pragma unroll 1
  for (unsigned tile = blockIdx.x; tile < count; tile += gridDim.x) {
    mbarrier_wait(&smem.full[stage], parity);
    const int row = static_cast<int>(tile / across) * C::kTileRows + own_row;
    const int col = static_cast<int>(tile % across) * C::kTileCols + own_col;
    if (col < shape.cols) {
      const float* window = &smem.halo[stage][own_row][own_col + C::kMargin - kRadius];
      float* to = out + row * shape.out_pitch + col;
      convolve_pairs<C::kStripRows, C::kBoxCols, kAligned>(window, weights, to, shape.out_pitch,
                                                           shape.rows - row, shape.cols - col);
    }
    __syncthreads();  // the stage has been read
    const unsigned next = tile + C::kStages * gridDim.x;
    if (threadIdx.x == 0 && next < count) load(next, stage);
    if (++stage == C::kStages) stage = 0, parity ^= 1;
  }
}

struct Pairs : Tma {
  using Config = PairsConfig;
  static constexpr LevelText text{
      .name = "pairs",
      .changed = "two neighbouring columns per thread; 8 bytes per shared load and store",
      .expect =
          "1.9 shared loads per result instead of 6.25, and half of the stores. A tile's rows are "
          "512 bytes instead of 256, so a row of it is in fewer pages of DRAM",
      .cost = "twice the sums per thread; 59 KB of shared memory per block, 3 blocks per SM",
  };

  static Claims claims(const Problem& p) {
    const Shape& s = p.shape;
    const double strip = Config::kStripRows;
    const double rows_read = (strip + 2 * kRadius) / strip;  // per row of the result
    const double loads = 3 * rows_read * s.rows * s.cols / Config::kColsPerThread;
    return {tma_loads("in").requests(tile_count(s, Config::kTileRows, Config::kTileCols)),
            shared_loads().on("window").requests(loads / 32),
            shared_loads().on("window").conflict_free(),
            global_stores("out").coalesced(),
            global_stores("out").requests(static_cast<double>(s.rows) * s.cols / 64),
            faster_than_previous(1.07)};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    return prepare_as<Config>(problem, buffers);
  }

  static void run(const Plan& plan, Stream stream) {
    using C = Config;
    const Shape& shape = plan.problem.shape;
    const unsigned count = tile_count(shape, C::kTileRows, C::kTileCols);
    const unsigned resident = C::kBlocksPerSm * static_cast<unsigned>(device_info().sm_count);
    const bool aligned =
        shape.out_pitch % 2 == 0 && reinterpret_cast<std::uintptr_t>(plan.buffers.out) % 8 == 0;
    launch(aligned ? pairs_convolution<C, true> : pairs_convolution<C, false>,
           {dim3(std::min(count, resident)), dim3(C::kThreads), sizeof(TmaSmem<C>)}, stream,
           plan.map, plan.buffers.filter, plan.buffers.out, shape, count);
  }
};

}  // namespace cookbook::convolution
