// SPDX-License-Identifier: MIT
// Sidebar of chapter 4: how many bytes of A and B one wave of blocks needs, for several raster
// orders. It only evaluates the kernel's own raster order, so it runs on either backend.
#include <cstdio>
#include <set>

#include "chapters/04_double_buffering/level_7_block_order.cuh"
#include "common/harness/run/arguments.hpp"

namespace cookbook::sgemm {

template <int kRows>
struct Order : BlockOrderConfig {
  static constexpr int kGroup = kRows;
};

/// Distinct bytes of A and B that the blocks of one wave read, averaged over all waves.
template <class C>
double megabytes_per_wave(int m, int n, int k, int blocks_per_wave) {
  const int tiles = ceil_div(m, C::kM) * ceil_div(n, C::kN);
  double bytes = 0;
  int waves = 0;
  for (int first = 0; first < tiles; first += blocks_per_wave, ++waves) {
    std::set<int> rows, cols;
    for (int i = first; i < first + blocks_per_wave && i < tiles; ++i) {
      const TileIndex tile = grouped_tile<C>(i, m, n);
      rows.insert(tile.row);
      cols.insert(tile.col);
    }
    bytes += 4.0 * k *
             (static_cast<double>(rows.size()) * C::kM + static_cast<double>(cols.size()) * C::kN);
  }
  return bytes / waves * 1e-6;
}

}  // namespace cookbook::sgemm

int main(int argc, char** argv) {
  using namespace cookbook::sgemm;
  cookbook::take_no_arguments(argc, argv);
  constexpr int kSms = 132;  // of an H200, with one block each
  std::printf("MB of A and B that one wave of %d blocks reads, and FLOPs per byte\n", kSms);
  std::printf("%14s %12s %12s %12s %12s\n", "size", "row by row", "groups of 4", "groups of 8",
              "groups of 16");
  for (const int n : {2048, 4096, 8192, 16384}) {
    const double megabytes[] = {
        megabytes_per_wave<Order<1>>(n, n, n, kSms), megabytes_per_wave<Order<4>>(n, n, n, kSms),
        megabytes_per_wave<Order<8>>(n, n, n, kSms), megabytes_per_wave<Order<16>>(n, n, n, kSms)};
    const double flops = 2.0 * BlockOrderConfig::kM * BlockOrderConfig::kN * n * kSms;
    std::printf("%14d", n);
    for (const double mb : megabytes) std::printf(" %6.0f /%5.0f", mb, flops / mb * 1e-6);
    std::printf("\n");
  }
}
