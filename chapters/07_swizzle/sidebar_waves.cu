// SPDX-License-Identifier: MIT
// Sidebar: how the raster order decides which data a wave of blocks needs. For every wave it counts
// the rows of A and the columns of B that its blocks need in total. These must come from HBM if L2
// keeps nothing from the wave before, and L2 must hold all of them so that the blocks can share
// them. It needs no GPU; on one, `./run profile 7 --ladder l2_order` counts. Usage: chapter-7-waves
// [M N K]...
//        chapter-7-waves --json FILE     the data of a picture (docs/pictures.md), at 8192
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "chapters/07_swizzle/tile_order.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"
#include "common/problems/gemm.hpp"

namespace cookbook::gemm {
namespace {

constexpr int kSms = 132, kBlockM = 128, kBlockN = 256, kShownWaves = 4;

/// kUp: blocks of a cluster, one above the other, that together take one tile of the order.
template <class Order>
void report(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, int up = 1) {
  const int tiles_m = ceil_div(static_cast<int>(m), kBlockM * up);
  const int tiles_n = ceil_div(static_cast<int>(n), kBlockN);
  double total = 0, largest = 0;
  std::set<int> rows, cols;
  int in_wave = 0, waves = 0;
  const auto close = [&] {
    const double bytes = 2.0 * static_cast<double>(k) *
                         (static_cast<double>(rows.size()) * kBlockM * up +
                          static_cast<double>(cols.size()) * kBlockN);
    total += bytes;
    largest = std::max(largest, bytes);
    rows.clear();
    cols.clear();
    in_wave = 0;
    ++waves;
  };
  for (unsigned block = 0; block < Order::blocks(tiles_m, tiles_n); ++block) {
    TileIndex tile;
    if (!Order::tile(static_cast<int>(block), tiles_m, tiles_n, tile)) continue;
    rows.insert(tile.m);
    cols.insert(tile.n);
    if (++in_wave == kSms / up) close();
  }
  if (in_wave > 0) close();
  std::printf("  %-24s %6d %14.1f %18.1f\n", name, waves, largest / 1e6, total / 1e6);
}

/// The first waves as data: tiles of C, numbered row by row, and how many row panels of A and
/// column panels of B they read.
template <class Order>
PictureData order_data(const std::string& name, int tiles_m, int tiles_n) {
  std::vector<PictureData> waves;
  std::vector<double> tiles;
  std::set<int> rows, cols;
  for (unsigned block = 0; waves.size() < kShownWaves; ++block) {
    TileIndex tile;
    if (!Order::tile(static_cast<int>(block), tiles_m, tiles_n, tile)) continue;
    tiles.push_back(tile.m * tiles_n + tile.n);
    rows.insert(tile.m);
    cols.insert(tile.n);
    if (tiles.size() < kSms) continue;
    waves.push_back(PictureData()
                        .set("tiles", tiles)
                        .set("rows", static_cast<double>(rows.size()))
                        .set("cols", static_cast<double>(cols.size())));
    tiles.clear();
    rows.clear();
    cols.clear();
  }
  return PictureData().set("name", name).set("waves", waves);
}

void write_data(const std::string& file) {
  constexpr int kSize = 8192, kTilesM = kSize / kBlockM, kTilesN = kSize / kBlockN;
  const std::vector<PictureData> orders = {
      order_data<RowMajorOrder>("row-major", kTilesM, kTilesN),
      order_data<GroupedOrder<16>>("grouped 16", kTilesM, kTilesN),
      order_data<HilbertOrder>("hilbert", kTilesM, kTilesN)};
  PictureData("waves", 7)
      .set("size", std::vector<double>(3, kSize))
      .set("tile", std::vector<double>{kBlockM, kBlockN})
      .set("sms", kSms)
      .set("orders", orders)
      .write(file);
}

void report_all(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::printf("%" PRId64 " x %" PRId64 " x %" PRId64
              ", tiles of 128 x 256, 132 at a time; operands %.1f MB\n",
              m, n, k, 2e-6 * static_cast<double>(k) * static_cast<double>(m + n));
  std::printf("  %-24s %6s %14s %18s\n", "order", "waves", "MB, one wave", "MB, all waves");
  report<RowMajorOrder>("row-major", m, n, k);
  report<GroupedOrder<4>>("grouped 4", m, n, k);
  report<GroupedOrder<8>>("grouped 8", m, n, k);
  report<GroupedOrder<16>>("grouped 16", m, n, k);
  report<HilbertOrder>("hilbert", m, n, k);
  report<GroupedOrder<8>>("grouped 8, clusters of 2", m, n, k, 2);
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  if (const auto file = cookbook::json_argument(argc, argv)) {
    cookbook::gemm::write_data(*file);
    return 0;
  }
  for (const auto& size : cookbook::product_sizes(
           argc, argv, {{4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 28672, 8192}})) {
    cookbook::gemm::report_all(size[0], size[1], size[2]);
  }
}
