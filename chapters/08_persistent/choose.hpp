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

namespace cookbook::gemm::any_shape {

/// The kernels, as in kTileKernels. one_*: a block per tile; loop_*: a persistent grid; ping_*: the
/// same with the ping-pong schedule.
enum class Tiles {
  one_64x64,
  one_64x128,
  one_128x64,
  one_128x128,
  one_128x160,
  loop_128x256,
  ping_64x256,
  ping_128x192,
};

/// A kernel with the constants of its prediction, fitted to the times of an H200 (cold L2) over a
/// grid of shapes: see README.md.
struct TileKernel {
  Tiles tiles;
  int m, n, cluster;  // of a block; blocks per cluster
  bool loop;          // a persistent grid
  double start_us;    // launch, first loads
  double step_us;     // per k-block of 64
  double wave_us;     // per tile of a block: its epilogue and, without a loop, the next start
};

// clang-format off
inline constexpr TileKernel kTileKernels[] = {
    //                     m    n  cluster loop start  step   wave
    {Tiles::one_64x64,     64,  64, 1, false, 2.97, 0.1140, 2.31},
    {Tiles::one_64x128,    64, 128, 1, false, 3.03, 0.1691, 2.52},
    {Tiles::one_128x64,   128,  64, 1, false, 2.79, 0.1793, 2.64},
    {Tiles::one_128x128,  128, 128, 1, false, 3.21, 0.3152, 2.68},
    {Tiles::one_128x160,  128, 160, 1, false, 3.00, 0.3985, 3.14},
    {Tiles::loop_128x256, 128, 256, 1, true,  5.18, 0.6526, 1.18},
    {Tiles::ping_64x256,   64, 256, 1, true,  6.15, 0.3305, 0.62},
    {Tiles::ping_128x192, 128, 192, 2, true,  6.87, 0.4846, 0.53},
};
// clang-format on

/// Predicted time of an m x n x k GEMM in microseconds. sms: of the GPU.
inline double predicted_us(const TileKernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k,
                           int sms) {
  const auto whole = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>((a + b - 1) / b);
  };
  const double tiles = whole(m, kernel.m * kernel.cluster) * whole(n, kernel.n);
  const double clusters = std::max(1, sms / kernel.cluster);
  const double waves = std::ceil(tiles / clusters);
  if (!kernel.loop && waves > 4) return std::numeric_limits<double>::infinity();  // not measured
  return kernel.start_us + waves * (whole(k, 64) * kernel.step_us + kernel.wave_us);
}

/// The kernel with the least predicted time.
inline Tiles choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
  const auto faster = [&](const TileKernel& a, const TileKernel& b) {
    return predicted_us(a, m, n, k, sms) < predicted_us(b, m, n, k, sms);
  };
  return std::min_element(std::begin(kTileKernels), std::end(kTileKernels), faster)->tiles;
}

}  // namespace cookbook::gemm::any_shape
