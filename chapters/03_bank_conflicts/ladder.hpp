// SPDX-License-Identifier: MIT
// Chapter 3: its ladders and their levels. `transpose` is the chapter; the others are its sidebars.
#pragma once

#include "common/harness/contract/named_row.hpp"
#include "generated/chapter_3_levels.hpp"

namespace cookbook {

inline Chapter chapter_3() {
  using namespace transpose;
  Chapter chapter;
  auto ladder = ladder_over<Problem>("transpose", "out[c][r] = in[r][c], fp32", {"rows", "cols"});
  ladder.gpu_size = {8192, 8192};
  ladder.check_size = {1024, 768};
  ladder.trace_size = {256, 192};
  ladder.test_sizes = {{1, 1},    {1, 32},    {31, 1},    {31, 33},    {32, 32},  {33, 31},
                       {33, 65},  {4, 4},     {60, 68},   {63, 65},    {64, 64},  {65, 63},
                       {128, 64}, {127, 129}, {1, 509},   {509, 1},    {97, 101}, {3, 1021},
                       {1021, 3}, {256, 192}, {132, 260}, {1378, 1090}};
  ladder.levels = rows<Naive, Tile, Padded, Swizzled, InFlight, Vectorised, Aligned>();

  auto width = ladder_over<ExchangeProblem>(
      "access_width", "sidebar: 4-, 8- and 16-byte accesses, and their strides", {"n"});
  width.roof = Roof::shared;
  width.gpu_size = {1 << 24};
  width.check_size = {1 << 14};
  width.trace_size = {1 << 12};
  width.test_sizes = {{4}, {252}, {1024}, {1028}, {4100}};
  width.levels = {named<Exchange<1, 32>>("bytes_4_stride_32"),
                  named<Exchange<1, 2>>("bytes_4_stride_2"),
                  named<Exchange<1, 3>>("bytes_4_stride_3"),
                  named<Exchange<1, 1>>("bytes_4"),
                  named<Exchange<2, 1>>("bytes_8"),
                  named<Exchange<4, 1>>("bytes_16"),
                  named<Exchange<4, 2>>("bytes_16_stride_2")};

  auto broadcast = ladder_over<ProductProblem>(
      "broadcast", "sidebar: tile[k][threadIdx.x] and one word for all lanes", {"products"});
  broadcast.gpu_size = {1 << 15};
  broadcast.check_size = {64};
  broadcast.trace_size = {8};
  broadcast.test_sizes = {{1}, {2}, {31}};
  broadcast.levels = rows<Product<true>, Product<false>>();

  auto shape = ladder_over<Problem>("tile_shape", "sidebar: tile, threads and raster order",
                                    {"rows", "cols"});
  shape.gpu_size = {8192, 8192};
  shape.check_size = {512, 384};
  shape.trace_size = {256, 192};
  shape.test_sizes = {{1, 1}, {33, 65}, {60, 68}, {132, 260}, {260, 516}};
  constexpr int kDownFirst = 1 << 16;  // all rows of tiles in one group
  shape.levels = {named<TileShape<32, 32, 64, 20>>("tile_32x32_64_threads"),
                  named<TileShape<64, 64, 256, 4>>("tile_64x64_256_threads_4_blocks"),
                  named<TileShape<64, 64, 256, 8>>("tile_64x64_256_threads_8_blocks"),
                  named<TileShape<64, 64, 256, 8, 1, true>>("tile_64x64_8_blocks_streaming"),
                  named<TileShape<64, 64, 256, 6, 8>>("tile_64x64_6_blocks_group_8"),
                  named<TileShape<64, 64, 256, 6, kDownFirst>>("tile_64x64_6_blocks_down_first"),
                  named<TileShape<128, 64, 512, 3>>("tile_128x64_512_threads"),
                  named<TileShape<64, 128, 512, 3>>("tile_64x128_512_threads"),
                  named<Words<64, 64, 8, 1, 4>>("words_64x64_256_threads_4_blocks"),
                  named<Words<64, 64, 8, 1, 6>>("words_64x64_256_threads_6_blocks"),
                  named<Words<64, 64, 16, 1, 4>>("words_64x64_512_threads_4_blocks"),
                  named<Words<64, 64, 32, 1, 2>>("words_64x64_1024_threads"),
                  named<Words<64, 32, 16, 1, 4>>("words_64x32_512_threads"),
                  named<Words<128, 32, 16, 1, 4>>("words_128x32_512_threads"),
                  named<Words<128, 64, 32, 1, 1>>("words_128x64_1024_threads"),
                  named<Words<64, 64, 16, 1, 3, 8>>("words_64x64_512_threads_group_8"),
                  named<Words<64, 64, 16, 1, 3, kDownFirst>>("words_64x64_512_down_first")};

  auto odd = ladder_over<Problem>("odd_shapes", "sidebar: rows that start anywhere in a sector",
                                  {"rows", "cols"});
  odd.gpu_size = {8191, 8193};
  odd.check_size = {513, 383};
  odd.trace_size = {255, 193};
  odd.test_sizes = {{1, 1}, {33, 65}, {63, 31}, {64, 64}, {97, 101}, {131, 259}, {259, 517}};
  odd.levels = {make_level<InFlight>(),
                make_level<Aligned>(),
                named<Words<128, 32, 16, 8, 3>>("sectors_128x32_512_threads"),
                named<Words<64, 64, 16, 8, 3>>("sectors_64x64_512_threads"),
                named<Words<64, 64, 16, 32, 2>>("lines_64x64_512_threads"),
                named<Words<64, 32, 16, 32, 3>>("lines_64x32_512_threads"),
                named<Words<128, 32, 8, 32, 4>>("lines_128x32_256_threads_4_blocks"),
                named<Words<128, 32, 8, 32, 5>>("lines_128x32_256_threads_5_blocks"),
                named<Words<128, 32, 8, 32, 6>>("lines_128x32_256_threads_6_blocks"),
                named<Words<256, 32, 16, 32, 3>>("lines_256x32_512_threads"),
                named<Words<128, 32, 16, 32, 3, 4>>("lines_128x32_512_threads_group_4"),
                named<Words<128, 32, 16, 32, 3, kDownFirst>>("lines_128x32_512_down_first"),
                named<Words<128, 32, 16, 1, 3, kDownFirst>>("unaligned_128x32_512_down_first")};

  chapter.ladders = {ladder, width, broadcast, shape, odd};
  chapter.exercises = {make_level<ConflictFree>(), make_level<Edges>()};
  return chapter;
}

}  // namespace cookbook
