// SPDX-License-Identifier: MIT
// The kernels that the last level of chapter 8 chooses, over grids of shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "chapters/08_persistent/choose.hpp"
#include "common/harness/process.hpp"

namespace {

// ---- chapter 8: tiles of C ---------------------------------------------------------------------

using namespace cookbook::gemm::any_shape;

TEST(TileChoice, PredictionsByHand) {
  // 64 tiles on 132 SMs: one wave of 16 k-blocks, with 64 / 132 of the SMs. 1,024 tiles: eight
  // waves of one, with 1,024 / 1,056 of them.
  const TileKernel one{Tiles::turned_128x128, 128, 128, 1, false, true, 4.0, 0.5, 0.132, 2.0, 0.0};
  EXPECT_DOUBLE_EQ(predicted_us(one, 1024, 1024, 1024, 132), 4 + 16 * (0.5 + 0.064) + 2);
  EXPECT_DOUBLE_EQ(predicted_us(one, 4096, 4096, 64, 132), 4 + 8 * (0.5 + 0.128 + 2));
  EXPECT_DOUBLE_EQ(predicted_us(one, 4096, 4000, 1, 132), 4 + 8 * (0.5 + 0.128 + 2));
  // Clusters of two: 1,024 tiles of 256 x 256 on 66 clusters are 16 waves, of 128 k-blocks.
  const TileKernel pair{Tiles::ping_128x192, 128, 256, 2, false, true, 4.0, 0.5, 0.0, 2.0, 0.0};
  EXPECT_DOUBLE_EQ(predicted_us(pair, 8192, 8192, 8192, 132), 4 + 16 * (128 * 0.5 + 2));
  TileKernel grid = one;
  grid.loop = false;  // up to four waves: 528 tiles
  EXPECT_DOUBLE_EQ(predicted_us(grid, 128, 128 * 528, 64, 132), 4 + 4 * (0.5 + 0.132 + 2));
  EXPECT_GT(predicted_us(grid, 128, 128 * 529, 64, 132), 1e9);
  // 11 x 12 tiles of 128 columns and 144 rows of C; the other way round it would be 12 x 11.
  const TileKernel turned{Tiles::turned_128x144, 128, 144, 1, true, false, 4.0, 0.5, 0.0, 2.0, 0.0};
  EXPECT_DOUBLE_EQ(predicted_us(turned, 144 * 12, 128 * 11, 64, 132), 4 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(predicted_us(turned, 128 * 11, 144 * 12, 64, 132), 4 + 2 * (0.5 + 2));
}

// With rows of B off lines a k-block takes longer, by a term like `share`.
TEST(TileChoice, RowsOfBOffLinesByHand) {
  const TileKernel one{Tiles::turned_128x128, 128, 128, 1, false, true, 4.0, 0.5, 0.132, 2.0, 0.33};
  EXPECT_DOUBLE_EQ(predicted_us(one, 1024, 1024, 1024, 132, RowsOfB::on_lines),
                   4 + 16 * (0.5 + 0.064) + 2);
  EXPECT_DOUBLE_EQ(predicted_us(one, 1024, 1024, 1024, 132, RowsOfB::off_lines),
                   4 + 16 * (0.5 + 0.064 + 0.16) + 2);
  // Narrow tiles load B more often.
  EXPECT_EQ(choose_tiles(1000, 1000, 4096, 132, RowsOfB::on_lines), Tiles::one_64x128);
  EXPECT_EQ(choose_tiles(1000, 1000, 4096, 132, RowsOfB::off_lines), Tiles::turned_64x192);
}

TEST(TileChoice, StreamKByHand) {
  // 16 tiles of 256 x 256 with 256 k-blocks each, divided evenly among 66 clusters.
  const double steps = 16 * 256 / 66.0;
  for (const auto& [m, n] : {std::pair{1024, 1024}, {769, 769}, {4096, 256}, {1, 4096}}) {
    EXPECT_DOUBLE_EQ(predicted_stream_k_us(m, n, 16384, 132, RowsOfB::on_lines),
                     25.9 + steps * 0.569);
    EXPECT_DOUBLE_EQ(predicted_stream_k_us(m, n, 16321, 132, RowsOfB::off_lines),
                     25.9 + steps * (0.569 + 0.014));
  }
  const auto measured = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return std::isfinite(predicted_stream_k_us(m, n, k, 132, RowsOfB::on_lines));
  };
  EXPECT_TRUE(measured(1024, 1024, 2048));
  EXPECT_FALSE(measured(1024, 1024, 2047));
  EXPECT_TRUE(measured(256 * 65, 256, 4096));
  EXPECT_FALSE(measured(256 * 65 + 1, 256, 4096));  // 66 tiles: a wave
  EXPECT_FALSE(measured(8192, 8192, 8192));
  EXPECT_FALSE(measured(std::int64_t{1} << 40, 256, 8192));  // 2^32 tiles
  EXPECT_FALSE(measured(256, std::int64_t{1} << 40, 8192));
  EXPECT_FALSE(std::isfinite(predicted_stream_k_us(256, 256, 4096, 1, RowsOfB::on_lines)));
}

TEST(TileChoice, ExtentsBeyond32BitsAreNotCutShort) {
  constexpr std::int64_t kLong = std::int64_t{1} << 33;  // 2^26 tiles of 128, 2^27 k-blocks of 64
  const TileKernel one{Tiles::turned_128x128, 128, 128, 1, false, true, 4.0, 0.5, 0.125, 2.0, 0.0};
  EXPECT_DOUBLE_EQ(predicted_us(one, kLong, 128, 64, 128), 4 + (1 << 19) * 2.625);
  EXPECT_DOUBLE_EQ(predicted_us(one, 128, kLong, 64, 128), 4 + (1 << 19) * 2.625);
  EXPECT_DOUBLE_EQ(predicted_us(one, 128, 128 * 128, kLong, 128), 4 + (1 << 27) * 0.625 + 2);
  EXPECT_EQ(choose_tiles(4096, 4096, kLong, 132), choose_tiles(4096, 4096, 1 << 20, 132));
  EXPECT_NE(choose_tiles(4096, 4096, kLong, 132), choose_tiles(4096, 4096, 1, 132));
  EXPECT_EQ(choose_tiles(kLong, 8192, 8192, 132), choose_tiles(1 << 20, 8192, 8192, 132));
  EXPECT_NE(choose_tiles(kLong, 8192, 8192, 132), choose_tiles(1, 8192, 8192, 132));
  EXPECT_EQ(choose_tiles(8192, kLong, 8192, 132), choose_tiles(8192, 1 << 20, 8192, 132));
  EXPECT_NE(choose_tiles(8192, kLong, 8192, 132), choose_tiles(8192, 1, 8192, 132));
  EXPECT_DOUBLE_EQ(choose_splitting(64, 64 * 66, kLong, 132).us,
                   8.67 + (1 << 26) * (0.1138 + 0.1262));
  EXPECT_FALSE(std::isfinite(choose_splitting(32 * kLong, 64, 8192, 132).us));  // 2^32 tiles
  EXPECT_FALSE(std::isfinite(choose_splitting(64, 32 * kLong, 8192, 132).us));
  EXPECT_EQ(skinny_width(kLong), 64);
}

TEST(TileChoice, FewVectorsGetTheNarrowestTileThatHoldsThem) {
  const std::vector<std::pair<int, int>> limits = {{2, 8},   {8, 8},   {9, 16},  {16, 16},
                                                   {17, 32}, {32, 32}, {33, 64}, {64, 64}};
  for (const auto& [vectors, width] : limits) {
    EXPECT_EQ(skinny_width(vectors), width) << vectors;
  }
}

TEST(TileChoice, TheFastestPredictedAndEveryKernelSomewhere) {
  std::set<Tiles> chosen;
  const std::vector<std::int64_t> extents = {65,   128,  256,  384,   512,   640,  768,  1000,
                                             1024, 1536, 2048, 2560,  3072,  4096, 5120, 6144,
                                             7168, 8192, 9216, 12288, 16384, 28672};
  for (const std::int64_t m : extents) {
    for (const std::int64_t n : extents) {
      for (const std::int64_t k : {64, 512, 1024, 1536, 2048, 4096, 8192, 16384}) {
        const Tiles tiles = choose_tiles(m, n, k, 132);
        const auto kernel = std::find_if(std::begin(kTileKernels), std::end(kTileKernels),
                                         [&](const TileKernel& x) { return x.tiles == tiles; });
        ASSERT_NE(kernel, std::end(kTileKernels));
        for (const TileKernel& other : kTileKernels) {
          EXPECT_LE(predicted_us(*kernel, m, n, k, 132), predicted_us(other, m, n, k, 132));
        }
        chosen.insert(tiles);
      }
    }
  }
  EXPECT_EQ(chosen.size(), std::size(kTileKernels));  // a kernel that is never chosen is in the way
}

TEST(SplitChoice, ByHand) {
  // 16 tiles of 64 x 64 are 128 of 132 SMs with eight blocks each: 128 k-blocks are 16 of each.
  const auto splitting = choose_splitting(512, 128, 8192, 132);
  EXPECT_EQ(splitting.splits, 8);
  EXPECT_DOUBLE_EQ(splitting.us, 8.67 + 16 * (0.1138 + 128 / 132.0 * 0.1262));
  EXPECT_EQ(choose_splitting(128, 512, 8192, 132).splits, 8);
  EXPECT_EQ(choose_splitting(64, 64 * 66, 8192, 132).splits, 2);
  EXPECT_FALSE(std::isfinite(choose_splitting(64, 64 * 67, 8192, 132).us));
}

TEST(SplitChoice, EachBlockHasAnSmAndKBlocks) {
  for (const int tiles : {1, 2, 7, 16, 17, 24, 25, 32, 40, 64, 66, 67, 257}) {
    for (const int k_blocks : {1, 2, 5, 8, 40, 400}) {
      const auto splitting = choose_splitting(64 * tiles, 64, 64 * k_blocks, 132);
      EXPECT_EQ(std::isfinite(splitting.us), k_blocks > 1 && tiles <= 66) << tiles;
      if (!std::isfinite(splitting.us)) continue;
      EXPECT_GE(splitting.splits, 2);
      EXPECT_LE(splitting.splits, std::min(8, k_blocks));
      EXPECT_LE(tiles * splitting.splits, 132) << tiles;
    }
  }
}

TEST(SplitChoice, ThroughL2ByHand) {
  const SplitKernel kernel{SplitTiles::of_128x96, 128, 96, 4.0, 0.5, 0.132};
  // Two tiles of 128 x 96 with 128 k-blocks each: 64 SMs for each, two k-blocks for each of 128.
  // The longer extent of C is the outputs, whether they are its rows or its columns.
  for (const auto& [m, n] : {std::pair{256, 96}, {96, 256}, {129, 33}}) {
    const auto splitting = predicted_splitting(kernel, m, n, 8129, 132);
    EXPECT_EQ(splitting.splits, 64);
    EXPECT_DOUBLE_EQ(splitting.us, 4 + 2 * (0.5 + 0.128));
  }
  EXPECT_TRUE(std::isfinite(predicted_splitting(kernel, 128 * 66, 96, 640, 132).us));
  EXPECT_FALSE(std::isfinite(predicted_splitting(kernel, 128 * 67, 96, 640, 132).us));
  EXPECT_FALSE(std::isfinite(predicted_splitting(kernel, 128 * 34, 97, 640, 132).us));
  EXPECT_FALSE(std::isfinite(predicted_splitting(kernel, 128, 96, 64, 132).us));
  EXPECT_EQ(predicted_splitting(kernel, 128, 96, 65, 132).splits, 2);
}

TEST(SplitChoice, TheFastestPredictedAndEveryKernelSomewhere) {
  std::set<SplitTiles> chosen;
  for (const std::int64_t m : {16, 40, 64, 100, 128, 192, 256, 512, 768, 1000, 2048, 4096}) {
    for (const std::int64_t n : {16, 40, 64, 100, 128, 192, 256, 512, 768, 1000, 2048, 4096}) {
      for (const std::int64_t k : {64, 512, 1024, 2048, 4096, 8192, 16384, 32768}) {
        const SplitKernel& split = choose_split_kernel(m, n, k, 132);
        const auto best = predicted_splitting(split, m, n, k, 132);
        for (const SplitKernel& other : kSplitKernels) {
          EXPECT_LE(best.us, predicted_splitting(other, m, n, k, 132).us);
        }
        if (!std::isfinite(best.us)) continue;
        EXPECT_LE(best.splits, (k + 63) / 64);
        const double tiles = std::ceil(static_cast<double>(std::max(m, n)) / split.outputs) *
                             std::ceil(static_cast<double>(std::min(m, n)) / split.vectors);
        EXPECT_LE(tiles * best.splits, 132);
        const double others = std::min(choose_splitting(m, n, k, 132).us,
                                       predicted_us(choose_kernel(m, n, k, 132), m, n, k, 132));
        if (best.us < others) chosen.insert(split.tiles);
      }
    }
  }
  EXPECT_EQ(chosen.size(), std::size(kSplitKernels));  // one that is never chosen is in the way
}

// The table of chapter 8's notes.md.
TEST(TileChoice, TheTableOfChapter8) {
  const auto chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return choose_tiles(m, n, k, 132);
  };
  EXPECT_EQ(chosen(512, 512, 512), Tiles::one_64x64);
  EXPECT_EQ(chosen(1024, 1024, 1024), Tiles::one_64x128);
  EXPECT_EQ(chosen(1536, 1536, 1536), Tiles::turned_128x144);
  EXPECT_EQ(chosen(2048, 2048, 2048), Tiles::loop_128x256);
  EXPECT_EQ(chosen(3072, 3072, 3072), Tiles::ping_128x192);
  EXPECT_EQ(chosen(4096, 4096, 4096), Tiles::loop_128x256);
  EXPECT_EQ(chosen(8192, 8192, 8192), Tiles::ping_128x192);
  EXPECT_EQ(chosen(64, 8192, 8192), Tiles::one_64x64);
  EXPECT_EQ(chosen(128, 8192, 8192), Tiles::one_64x128);
}

// What the choice costs where all kernels were timed: the geometric mean of its time over the
// fastest kernel's, and the worst.
TEST(TileChoice, CostsLittleWhereAllKernelsWereTimed) {
  std::ifstream file(
      cookbook::source_path("chapters/08_persistent/recorded/tiles_nvidia_h200.csv"));
  std::string line, field;
  int shapes = 0;
  double sum = 0, worst = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line[0] == 'm') continue;
    std::istringstream fields(line + ",");
    std::vector<std::string> values;
    while (std::getline(fields, field, ',')) values.push_back(field);
    ASSERT_EQ(values.size(), 5 + std::size(kTileKernels)) << line;
    const Tiles tiles =
        choose_tiles(std::stoll(values[0]), std::stoll(values[1]), std::stoll(values[2]), 132);
    double chosen = 0, best = 1e9;
    for (std::size_t i = 0; i < std::size(kTileKernels); ++i) {
      if (values[5 + i].empty()) continue;
      const double us = std::stod(values[5 + i]);
      best = std::min(best, us);
      if (kTileKernels[i].tiles == tiles) chosen = us;
    }
    ASSERT_GT(chosen, 0) << line << ": the chosen kernel was not timed";
    sum += std::log(chosen / best);
    worst = std::max(worst, chosen / best);
    ++shapes;
  }
  EXPECT_GE(shapes, 400);
  EXPECT_LE(std::exp(sum / shapes), 1.012);
  EXPECT_LE(worst, 1.25);
}

}  // namespace
