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
/// grid of shapes: see README.md.
struct TileKernel {
  Tiles tiles;
  int m, n, cluster;  // of a block; blocks per cluster
  bool turned;        // m columns and n rows of C
  bool loop;          // a persistent grid
  double start_us;    // launch, first loads
  double step_us;     // per k-block of 64, while other SMs are idle
  double share_us;    // per k-block, more while all SMs load: L2 is shared
  double wave_us;     // per tile of a block: its epilogue and, without a loop, the next start
};

// clang-format off
inline constexpr TileKernel kTileKernels[] = {
    //                        m    n  cluster turned loop start  step    share   wave
    {Tiles::one_64x64,        64,  64, 1, false, false, 5.34, 0.0767, 0.0549, 1.78},
    {Tiles::one_64x128,       64, 128, 1, false, false, 5.11, 0.1303, 0.0554, 2.19},
    {Tiles::turned_64x96,     64,  96, 1, true,  false, 5.22, 0.0912, 0.0800, 2.03},
    {Tiles::turned_64x160,    64, 160, 1, true,  false, 5.30, 0.1530, 0.0866, 2.21},
    {Tiles::turned_64x192,    64, 192, 1, true,  false, 5.29, 0.1907, 0.0748, 2.37},
    {Tiles::turned_128x96,   128,  96, 1, true,  false, 5.10, 0.1957, 0.0703, 2.54},
    {Tiles::turned_128x112,  128, 112, 1, true,  false, 5.04, 0.2295, 0.0620, 2.68},
    {Tiles::turned_128x128,  128, 128, 1, true,  false, 5.17, 0.2635, 0.0626, 2.54},
    {Tiles::turned_128x144,  128, 144, 1, true,  false, 5.33, 0.2880, 0.0837, 2.80},
    {Tiles::turned_128x176,  128, 176, 1, true,  false, 5.24, 0.3686, 0.0745, 2.82},
    {Tiles::turned_128x208,  128, 208, 1, true,  false, 5.07, 0.4317, 0.0905, 3.23},
    {Tiles::loop_128x256,    128, 256, 1, false, true,  7.03, 0.5423, 0.0896, 1.36},
    {Tiles::ping_64x256,      64, 256, 1, false, true,  8.05, 0.2745, 0.0542, 0.44},
    {Tiles::ping_128x192,    128, 192, 2, false, true,  8.84, 0.4106, 0.0628, 0.46},
};
// clang-format on

/// Predicted time of an m x n x k GEMM in microseconds. sms: of the GPU.
inline double predicted_us(const TileKernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k,
                           int sms) {
  const auto whole = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>((a + b - 1) / b);
  };
  if (kernel.turned) std::swap(m, n);
  const double tiles = whole(m, kernel.m * kernel.cluster) * whole(n, kernel.n);
  const double clusters = std::max(1, sms / kernel.cluster);
  const double waves = std::ceil(tiles / clusters);
  if (!kernel.loop && waves > 4) return std::numeric_limits<double>::infinity();  // not measured
  const double working = tiles / (waves * clusters);  // part of the SMs, on average
  const double step = kernel.step_us + working * kernel.share_us;
  return kernel.start_us + waves * (whole(k, 64) * step + kernel.wave_us);
}

/// The kernel with the least predicted time.
inline const TileKernel& choose_kernel(std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
  const auto faster = [&](const TileKernel& a, const TileKernel& b) {
    return predicted_us(a, m, n, k, sms) < predicted_us(b, m, n, k, sms);
  };
  return *std::min_element(std::begin(kTileKernels), std::end(kTileKernels), faster);
}
inline Tiles choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
  return choose_kernel(m, n, k, sms).tiles;
}

/// A kernel whose blocks divide the k-blocks of a tile (skinny.cuh), with the constants of its
/// prediction, fitted like those above.
struct SplitKernel {
  int m, n;           // of a tile: outputs, vectors
  int blocks_per_sm;  // resident
  double start_us;    // launch, first loads, and the exchange of the sums
  double step_us;     // per k-block of a block, while other SMs are idle
  double share_us;    // more while all SMs load
};

// clang-format off
inline constexpr SplitKernel kSplitKernels[] = {
    // m    n  blocks start  step    share
    { 64,  64, 2,  8.50, 0.1210, 0.1170},
    {128,  64, 1,  9.24, 0.1114, 0.2173},
    {128, 128, 1, 11.00, 0.2700, 0.1200},
};
// clang-format on

/// Tiles of `kernel`, the k-blocks of each divided among `splits` blocks.
struct Splitting {
  SplitKernel kernel;
  int splits;
  double us;  // predicted
};

/// Whether an SM is free for each block. A cluster has its SMs in one GPC, and GPCs differ: of the
/// 132 SMs of an H200, as many clusters were resident as fit seven GPCs of 16.
inline bool all_resident(const SplitKernel& kernel, std::int64_t tiles, int splits, int sms) {
  return tiles * splits <= sms && tiles <= sms / 18 * (16 * kernel.blocks_per_sm / splits);
}

/// The fastest predicted way to divide K among two to eight blocks per tile; `us` is infinite if
/// not all of them would be resident.
inline Splitting choose_splitting(std::int64_t outputs, std::int64_t vectors, std::int64_t k,
                                  int sms) {
  Splitting best{kSplitKernels[0], 1, std::numeric_limits<double>::infinity()};
  for (const SplitKernel& kernel : kSplitKernels) {
    const std::int64_t tiles = ((outputs + kernel.m - 1) / kernel.m) *  //
                               ((vectors + kernel.n - 1) / kernel.n);
    const std::int64_t k_blocks = (k + 63) / 64;
    for (int splits = 2; splits <= 8 && splits <= k_blocks; ++splits) {
      if (!all_resident(kernel, tiles, splits, sms)) continue;
      const double working = static_cast<double>(tiles * splits) / sms;
      const auto steps = static_cast<double>((k_blocks + splits - 1) / splits);
      const double us = kernel.start_us + steps * (kernel.step_us + working * kernel.share_us);
      if (us < best.us) best = {kernel, splits, us};
    }
  }
  return best;
}

/// Vectors per tile of a GEMM with few of them: the narrowest tile that holds all, up to 64.
inline int skinny_width(std::int64_t vectors) {
  return vectors <= 8 ? 8 : vectors <= 16 ? 16 : vectors <= 32 ? 32 : 64;
}

}  // namespace cookbook::gemm::any_shape
