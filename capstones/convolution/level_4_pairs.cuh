// SPDX-License-Identifier: MIT
// Level 4: a thread computes two neighbouring columns, with loads and stores of 8 bytes. Tiles are
// twice as wide. The kernel is level 3's, with another Config.
#pragma once

#include "common/device/vector.cuh"
#include "level_3_tma.cuh"

namespace cookbook::convolution {

struct PairsConfig : TmaConfig {
  static constexpr int kThreads = 128;
  static constexpr int kTileRows = 32, kTileCols = 128;  // of the result
  static constexpr int kColsPerThread = 2;
  static constexpr int kThreadCols = kTileCols / kColsPerThread;  // threads across the tile
  static constexpr int kStrips = kThreads / kThreadCols;
  static constexpr int kStripRows = kTileRows / kStrips;
  static constexpr int kHaloRows = kTileRows + 2 * kRadius;
  static constexpr int kStages = 3;  // the tiles are half as high
  static constexpr int kBlocksPerSm = 3;
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

/// kAligned: all rows of the result begin on 8-byte boundaries.
template <bool kAligned>
struct AlignedPairsConfig : PairsConfig {
  static __device__ __forceinline__ void convolve(const float* window,
                                                  const float (&weights)[kSide][kSide], float* out,
                                                  std::int64_t pitch, int rows, int cols) {
    convolve_pairs<kStripRows, kBoxCols, kAligned>(window, weights, out, pitch, rows, cols);
  }
};

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
    const Shape& shape = plan.problem.shape;
    const bool aligned =
        shape.out_pitch % 2 == 0 && reinterpret_cast<std::uintptr_t>(plan.buffers.out) % 8 == 0;
    aligned ? run_as<AlignedPairsConfig<true>>(plan, stream)
            : run_as<AlignedPairsConfig<false>>(plan, stream);
  }
};

}  // namespace cookbook::convolution
