// SPDX-License-Identifier: MIT
/// @file
/// Which tiles level 6 chooses for a GEMM of which TMA stores C: those with the least predicted
/// time. Functions of extents, without CUDA, so that a test can ask for any shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace cookbook::gemm::any_shape {

/// The kernels, as in kTileKernels. one_*: a block per tile; turned_*: the same with tiles of the
/// transpose of C; loop_*: a persistent grid; ping_*: the same with the ping-pong schedule.
enum class Tiles {
  one_64x64,
  one_64x128,
  turned_64x96,
  turned_64x160,
  turned_64x192,
  turned_128x96,
  turned_128x112,
  turned_128x128,
  turned_128x144,
  turned_128x176,
  turned_128x208,
  loop_128x256,
  ping_64x256,
  ping_128x192,
};

/// A kernel with the constants of its prediction, fitted to the times of an H200 (cold L2) over a
/// grid of shapes: see notes.md.
struct TileKernel {
  Tiles tiles;
  int m, n, cluster;  // of a block; blocks per cluster
  bool turned;        // m columns and n rows of C
  bool loop;          // a persistent grid
  double start_us;    // launch, first loads
  double step_us;     // per k-block of 64, while other SMs are idle
  double share_us;    // per k-block, more while all SMs load: L2 is shared
  double wave_us;     // per tile of a block: its epilogue and, without a loop, the next start
  double lines_us;    // per k-block, more while all SMs load rows of B that begin within lines
};

// clang-format off
inline constexpr TileKernel kTileKernels[] = {
    //                        m    n  cluster turned loop start  step    share   wave  lines
    {Tiles::one_64x64,        64,  64, 1, false, false, 5.34, 0.0767, 0.0549, 1.78, 0.0826},
    {Tiles::one_64x128,       64, 128, 1, false, false, 5.11, 0.1303, 0.0554, 2.19, 0.1429},
    {Tiles::turned_64x96,     64,  96, 1, true,  false, 5.22, 0.0912, 0.0800, 2.03, 0.0991},
    {Tiles::turned_64x160,    64, 160, 1, true,  false, 5.30, 0.1530, 0.0866, 2.21, 0.0920},
    {Tiles::turned_64x192,    64, 192, 1, true,  false, 5.29, 0.1907, 0.0748, 2.37, 0.0588},
    {Tiles::turned_128x96,   128,  96, 1, true,  false, 5.10, 0.1957, 0.0703, 2.54, 0.1118},
    {Tiles::turned_128x112,  128, 112, 1, true,  false, 5.04, 0.2295, 0.0620, 2.68, 0.0887},
    {Tiles::turned_128x128,  128, 128, 1, true,  false, 5.17, 0.2635, 0.0626, 2.54, 0.0435},
    {Tiles::turned_128x144,  128, 144, 1, true,  false, 5.33, 0.2880, 0.0837, 2.80, 0.0094},
    {Tiles::turned_128x176,  128, 176, 1, true,  false, 5.24, 0.3686, 0.0745, 2.82, 0.0216},
    {Tiles::turned_128x208,  128, 208, 1, true,  false, 5.07, 0.4317, 0.0905, 3.23, 0.0000},
    {Tiles::loop_128x256,    128, 256, 1, false, true,  7.03, 0.5423, 0.0896, 1.36, 0.0000},
    {Tiles::ping_64x256,      64, 256, 1, false, true,  8.05, 0.2745, 0.0542, 0.44, 0.2185},
    {Tiles::ping_128x192,    128, 192, 2, false, true,  8.84, 0.4106, 0.0628, 0.46, 0.0000},
};
// clang-format on

/// Whether rows of B are where boxes of 128 bytes begin and end with lines of L2, which have 128
/// bytes too. A row of any other box is in two lines.
enum class RowsOfB { on_lines, off_lines };

/// Predicted time of an m x n x k GEMM in microseconds. sms: of the GPU.
inline double predicted_us(const TileKernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k,
                           int sms, RowsOfB rows_of_b = RowsOfB::on_lines) {
  const auto whole = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>((a + b - 1) / b);
  };
  if (kernel.turned) std::swap(m, n);
  const double tiles = whole(m, kernel.m * kernel.cluster) * whole(n, kernel.n);
  const double clusters = std::max(1, sms / kernel.cluster);
  const double waves = std::ceil(tiles / clusters);
  if (!kernel.loop && waves > 4) return std::numeric_limits<double>::infinity();  // not measured
  const double working = tiles / (waves * clusters);  // part of the SMs, on average
  const double lines_us = rows_of_b == RowsOfB::off_lines ? kernel.lines_us : 0.0;
  const double step = kernel.step_us + working * (kernel.share_us + lines_us);
  return kernel.start_us + waves * (whole(k, 64) * step + kernel.wave_us);
}

/// The kernel with the least predicted time.
inline const TileKernel& choose_kernel(std::int64_t m, std::int64_t n, std::int64_t k, int sms,
                                       RowsOfB rows_of_b = RowsOfB::on_lines) {
  const auto faster = [&](const TileKernel& a, const TileKernel& b) {
    return predicted_us(a, m, n, k, sms, rows_of_b) < predicted_us(b, m, n, k, sms, rows_of_b);
  };
  return *std::min_element(std::begin(kTileKernels), std::end(kTileKernels), faster);
}
inline Tiles choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int sms,
                          RowsOfB rows_of_b = RowsOfB::on_lines) {
  return choose_kernel(m, n, k, sms, rows_of_b).tiles;
}

/// Predicted time of stream-K with tiles of 256 x 256 per cluster of two: it divides all k-blocks
/// evenly, so that no SM is idle. Infinite where it was not measured: short K, or a wave of tiles
/// and more.
inline double predicted_stream_k_us(std::int64_t m, std::int64_t n, std::int64_t k, int sms,
                                    RowsOfB rows_of_b) {
  constexpr double kStartUs = 25.9, kStepUs = 0.569, kLinesUs = 0.014;
  const std::int64_t tiles = ((m + 255) / 256) * ((n + 255) / 256), k_blocks = (k + 63) / 64;
  const int clusters = std::max(1, sms / 2);
  if (k < 2048 || tiles >= clusters) return std::numeric_limits<double>::infinity();
  const double step = kStepUs + (rows_of_b == RowsOfB::off_lines ? kLinesUs : 0.0);
  return kStartUs + static_cast<double>(tiles) * static_cast<double>(k_blocks) / clusters * step;
}

/// Blocks that divide the k-blocks of each tile of 64 x 64 (skinny.cuh), and the predicted time.
struct Splitting {
  int splits;
  double us;
};

/// The fastest predicted way to divide K among two to eight blocks per tile, each with an SM of its
/// own; `us` is infinite if there is none. The constants are fitted like those above. start:
/// launch, first loads, and the exchange of the sums.
inline Splitting choose_splitting(std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
  constexpr double kStartUs = 8.67, kStepUs = 0.1138, kShareUs = 0.1262;
  const std::int64_t tiles = ((m + 63) / 64) * ((n + 63) / 64), k_blocks = (k + 63) / 64;
  Splitting best{1, std::numeric_limits<double>::infinity()};
  for (int splits = 2; splits <= 8 && splits <= k_blocks && tiles * splits <= sms; ++splits) {
    const double working = static_cast<double>(tiles * splits) / sms;
    const auto steps = static_cast<double>((k_blocks + splits - 1) / splits);
    const double us = kStartUs + steps * (kStepUs + working * kShareUs);
    if (us < best.us) best = {splits, us};
  }
  return best;
}

/// The kernels of split_k.cuh, as in kSplitKernels.
enum class SplitTiles { of_64x32, of_128x96, of_128x160, of_128x256 };

/// Such a kernel, with constants that are fitted like those above. start: launch, first loads, and
/// the exchange of the sums.
struct SplitKernel {
  SplitTiles tiles;
  int outputs, vectors;  // per tile: of the longer and of the shorter extent of C
  double start_us, step_us, share_us;
};

// clang-format off
inline constexpr SplitKernel kSplitKernels[] = {
    //                                  start   step   share
    {SplitTiles::of_64x32,    64,  32,  9.31, 0.231, 0.000},
    {SplitTiles::of_128x96,  128,  96, 10.50, 0.111, 0.409},
    {SplitTiles::of_128x160, 128, 160, 13.64, 0.225, 0.381},
    {SplitTiles::of_128x256, 128, 256, 17.36, 0.602, 0.107},
};
// clang-format on

/// The fastest predicted number of blocks that divide the k-blocks of each tile, each with an SM of
/// its own; `us` is infinite if it is one.
inline Splitting predicted_splitting(const SplitKernel& kernel, std::int64_t m, std::int64_t n,
                                     std::int64_t k, int sms) {
  const auto whole = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t tiles =
      whole(std::max(m, n), kernel.outputs) * whole(std::min(m, n), kernel.vectors);
  const std::int64_t k_blocks = whole(k, 64);
  Splitting best{1, std::numeric_limits<double>::infinity()};
  for (int splits = 2; splits <= k_blocks && tiles * splits <= sms; ++splits) {
    const double working = static_cast<double>(tiles * splits) / sms;
    const auto steps = static_cast<double>(whole(k_blocks, splits));
    const double us = kernel.start_us + steps * (kernel.step_us + working * kernel.share_us);
    if (us < best.us) best = {splits, us};
  }
  return best;
}

/// The kernel of split_k.cuh with the least predicted time.
inline const SplitKernel& choose_split_kernel(std::int64_t m, std::int64_t n, std::int64_t k,
                                              int sms) {
  const auto faster = [&](const SplitKernel& a, const SplitKernel& b) {
    return predicted_splitting(a, m, n, k, sms).us < predicted_splitting(b, m, n, k, sms).us;
  };
  return *std::min_element(std::begin(kSplitKernels), std::end(kSplitKernels), faster);
}

/// Vectors per tile of a GEMM with few of them: the narrowest tile that holds all, up to 64.
inline int skinny_width(std::int64_t vectors) {
  return vectors <= 8 ? 8 : vectors <= 16 ? 16 : vectors <= 32 ? 32 : 64;
}

}  // namespace cookbook::gemm::any_shape
