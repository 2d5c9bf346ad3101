// SPDX-License-Identifier: MIT
// The kernels that the last levels of chapters 3 and 9 choose, over grids of shapes, and how the
// library chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chapters/03_bank_conflicts/choose.hpp"
#include "chapters/09_online_softmax/choose.hpp"
#include "library/choose.hpp"

namespace {

using namespace cookbook::softmax;

const std::vector<std::int64_t> kExtents = {
    1,     2,     3,      5,      8,      16,     17,     31,      32,     33,
    63,    64,    65,     127,    255,    256,    500,    512,     513,    1000,
    1024,  2047,  2048,   4096,   4099,   8192,   8200,   16384,   16385,  32768,
    32769, 65537, 100003, 262144, 262145, 524288, 524289, 1000003, 3000000};

template <class Check>
void for_all_rows(const Check& check) {
  for (const std::int64_t rows : kExtents) {
    for (const std::int64_t cols : kExtents) {
      for (const int bytes : {2, 4}) {
        for (const Access access : {Access::vectors, Access::peeled, Access::elements}) {
          for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
            if (access == Access::vectors && cols * bytes % 16 != 0) continue;
            RowCase c;
            c.rows = rows;
            c.cols = cols;
            c.element_bytes = bytes;
            c.access = access;
            c.packed = (flags & 1) != 0;
            c.exponentials = (flags & 2) != 0;
            c.has_clusters = (flags & 4) != 0;
            check(c);
          }
        }
      }
    }
  }
}

// Longest row of a kernel in elements, from its configurations. A bulk copy needs a boundary.
bool can_hold(RowKernel kernel, const RowCase& c) {
  const std::int64_t whole = c.cols - c.cols % (16 / c.element_bytes);
  const std::int64_t held = c.access == Access::elements ? c.cols : whole;
  switch (kernel) {
    case RowKernel::short_rows:
      return c.access == Access::vectors && c.cols * c.element_bytes <= 128;
    case RowKernel::packed_rows: return c.access == Access::peeled && c.packed && c.cols <= 64;
    case RowKernel::on_chip: return held <= 1024 * 32;
    case RowKernel::in_shared:
      return c.has_clusters && c.access != Access::elements &&
             whole * c.element_bytes <= 16 * 64 * 1024;
    case RowKernel::cluster: return c.has_clusters && c.cols <= 16 * 512 * 32;
    case RowKernel::any_length: return true;
  }
  return false;
}

TEST(Choices, EveryRowHasAKernelThatHoldsIt) {
  for_all_rows([](const RowCase& c) {
    EXPECT_TRUE(can_hold(choose_row_kernel(c), c))
        << c.rows << "x" << c.cols << ", " << c.element_bytes << " bytes";
  });
}

TEST(Choices, ARowIsReadTwiceOnlyWhereNothingHoldsIt) {
  for_all_rows([](const RowCase& c) {
    if (choose_row_kernel(c) != RowKernel::any_length) return;
    // From L2: rows of bf16 that would leave level 5's blocks half empty.
    const bool in_l2 = c.element_bytes == 2 && c.cols > 8192 && c.cols <= 10240 &&
                       c.rows * c.cols * 2 <= std::int64_t{1024} * 1024 * c.sm_count;
    // Or level 8's clusters of two: more than a row per SM, and four rounds of 64 KB per SM.
    const bool two_blocks = c.element_bytes == 2 && c.cols > 16384 && c.cols < 32768 + 8 &&
                            c.rows > c.sm_count &&
                            c.rows * c.cols * 2 <= std::int64_t{256} * 1024 * c.sm_count;
    if (in_l2 || two_blocks) return;
    EXPECT_FALSE(can_hold(RowKernel::on_chip, c)) << c.rows << "x" << c.cols;
    EXPECT_FALSE(can_hold(RowKernel::cluster, c)) << c.rows << "x" << c.cols;
    EXPECT_FALSE(can_hold(RowKernel::in_shared, c) && c.cols * c.element_bytes <= 1 << 20)
        << c.rows << "x" << c.cols;
  });
}

TEST(Choices, AClusterHasAtMost16BlocksAndEveryBlockAPiece) {
  for_all_rows([](const RowCase& c) {
    const int cluster = cluster_for_few_rows(c);
    EXPECT_TRUE(cluster >= 1 && cluster <= 16 && (cluster & (cluster - 1)) == 0);
    if (cluster == 1) return;
    EXPECT_LE(c.rows * cluster, c.sm_count);
    EXPECT_GE(c.cols * c.element_bytes / cluster, 8192);
  });
}

RowKernel softmax_of(std::int64_t rows, std::int64_t cols, int bytes) {
  RowCase c;
  c.rows = rows;
  c.cols = cols;
  c.element_bytes = bytes;
  c.access = cols * bytes % 16 == 0 ? Access::vectors : Access::peeled;
  c.packed = true;
  return choose_row_kernel(c);
}

// The table of chapter 9's notes.md.
TEST(Choices, TheTableOfChapter9) {
  EXPECT_EQ(softmax_of(262144, 64, 2), RowKernel::short_rows);
  EXPECT_EQ(softmax_of(100, 64, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(100000, 17, 2), RowKernel::packed_rows);
  EXPECT_EQ(softmax_of(300000, 5, 4), RowKernel::packed_rows);
  EXPECT_EQ(softmax_of(16384, 1000, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(16384, 1023, 4), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(200000, 33, 2), RowKernel::packed_rows);
  EXPECT_EQ(softmax_of(50000, 127, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(70000, 128, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(30000, 200, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(65536, 256, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(262144, 64, 4), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(262144, 32, 4), RowKernel::short_rows);
  EXPECT_EQ(softmax_of(1500, 10007, 2), RowKernel::any_length);
  EXPECT_EQ(softmax_of(700, 12288, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(700, 12288, 4), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(100, 30000, 2), RowKernel::cluster);
  EXPECT_EQ(softmax_of(120, 20000, 4), RowKernel::cluster);
  EXPECT_EQ(softmax_of(100, 40000, 2), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(20, 131072, 4), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(4096, 16384, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(40, 50000, 2), RowKernel::cluster);
  EXPECT_EQ(softmax_of(33, 100003, 2), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(8, 8192, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(16, 16384, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(16, 16384, 4), RowKernel::in_shared);  // in clusters
  EXPECT_EQ(softmax_of(777, 4099, 4), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(8192, 1027, 4), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(777, 4099, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(4096, 8192, 2), RowKernel::on_chip);
  EXPECT_EQ(softmax_of(32768, 8192, 2), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(4096, 8192, 4), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(512, 65537, 2), RowKernel::in_shared);
  EXPECT_EQ(softmax_of(64, 1000003, 4), RowKernel::any_length);
}

using cookbook::transpose::choose_transpose;
using cookbook::transpose::TransposeKernel;

TEST(Choices, TheShortExtentOfATransposeFitsATile) {
  for (const std::int64_t rows : kExtents) {
    for (const std::int64_t cols : kExtents) {
      for (const int flags : {0, 1, 2, 3, 4, 5}) {
        const bool vectors = flags % 2 != 0, on_sectors = flags >= 2, on_lines = flags >= 4;
        const TransposeKernel kernel = choose_transpose(rows, cols, vectors, on_sectors, on_lines);
        // A block of level 7 has a warp or more per long row, 512 threads at most.
        if (kernel == TransposeKernel::few_rows) {
          EXPECT_LE(32 * rows, 512);
        }
        if (kernel == TransposeKernel::few_cols) {
          EXPECT_LE(32 * cols, 512);
        }
        if (rows == 1 || cols == 1) {
          EXPECT_TRUE(is_narrow(kernel)) << rows << "x" << cols;
        }
        if (kernel == TransposeKernel::on_lines) {
          EXPECT_TRUE(on_lines);
        }
        // Tiles of 32, 64 and 128 rows or columns cover an extent that is at most that short, or
        // the larger tiles are fewer than 1.5 per SM.
        if (kernel == TransposeKernel::small_tiles) {
          EXPECT_TRUE(std::min(rows, cols) <= 32 || rows * cols <= 198 * 64 * 64)
              << rows << "x" << cols;
        }
        // Longer ones: where no sector has two writers, L2 holds what is written, or level 6 would
        // leave SMs idle.
        if (kernel == TransposeKernel::tiles) {
          EXPECT_TRUE(std::min(rows, cols) <= 128 || rows * cols <= 198 * 128 * 64 || on_sectors ||
                      (vectors && rows * cols <= 10 << 20))
              << rows << "x" << cols;
        }
      }
    }
  }
}

// The table of chapter 3's notes.md.
TEST(Choices, TheTableOfChapter3) {
  const auto odd = [](std::int64_t rows, std::int64_t cols) {
    return choose_transpose(rows, cols, false, false, false);
  };
  const auto even = [](std::int64_t rows, std::int64_t cols) {
    return choose_transpose(rows, cols, true, true, true);
  };
  EXPECT_EQ(odd(3, 400001), TransposeKernel::few_rows);
  EXPECT_EQ(odd(16, 300001), TransposeKernel::few_rows);
  EXPECT_EQ(even(8, 1000000), TransposeKernel::few_rows);
  EXPECT_EQ(odd(400001, 3), TransposeKernel::few_cols);
  EXPECT_EQ(even(500000, 8), TransposeKernel::few_cols);
  EXPECT_EQ(odd(17, 100000), TransposeKernel::small_tiles);
  EXPECT_EQ(odd(777, 999), TransposeKernel::tiles);  // 112 windows, fewer than SMs
  EXPECT_EQ(odd(300001, 32), TransposeKernel::small_tiles);
  EXPECT_EQ(even(12, 50000), TransposeKernel::few_rows);
  EXPECT_EQ(even(50000, 12), TransposeKernel::few_cols);
  EXPECT_EQ(even(16, 65536), TransposeKernel::few_rows);
  EXPECT_EQ(even(100, 100), TransposeKernel::small_tiles);
  EXPECT_EQ(choose_transpose(600, 9001, false, true, false), TransposeKernel::tiles);
  EXPECT_EQ(choose_transpose(1500, 1500, true, false, false), TransposeKernel::tiles);
  EXPECT_EQ(odd(33, 100000), TransposeKernel::tiles);
  EXPECT_EQ(even(48, 100000), TransposeKernel::tiles);
  EXPECT_EQ(odd(100, 50001), TransposeKernel::tiles);
  EXPECT_EQ(odd(128, 100001), TransposeKernel::aligned);
  EXPECT_EQ(odd(80001, 40), TransposeKernel::aligned);
  EXPECT_EQ(odd(90, 40000), TransposeKernel::aligned);
  EXPECT_EQ(even(100000, 128), TransposeKernel::tiles);
  EXPECT_EQ(even(8192, 8192), TransposeKernel::tiles);
  EXPECT_EQ(odd(8191, 8193), TransposeKernel::aligned);
}

constexpr std::int64_t kHuge = (std::int64_t{1} << 32) + 3;  // 3 as a 32-bit integer

// The last shape within each limit of choose_transpose() and the first one beyond it.
TEST(Choices, LimitsOfChapter3) {
  const auto odd = [](std::int64_t rows, std::int64_t cols) {
    return choose_transpose(rows, cols, false, false, false);
  };
  const auto even = [](std::int64_t rows, std::int64_t cols) {
    return choose_transpose(rows, cols, true, true, true);
  };
  // The shorter extent decides where both are short.
  EXPECT_EQ(odd(16, 5), TransposeKernel::few_cols);
  EXPECT_EQ(odd(5, 16), TransposeKernel::few_rows);
  EXPECT_EQ(odd(5, 5), TransposeKernel::few_rows);
  EXPECT_EQ(odd(16, 1000), TransposeKernel::few_rows);
  EXPECT_EQ(odd(17, 1000), TransposeKernel::small_tiles);
  EXPECT_EQ(odd(1000, 16), TransposeKernel::few_cols);
  EXPECT_EQ(odd(1000, 17), TransposeKernel::small_tiles);
  EXPECT_EQ(even(16, 10000), TransposeKernel::few_rows);
  EXPECT_EQ(even(17, 10000), TransposeKernel::tiles);
  EXPECT_EQ(even(10000, 16), TransposeKernel::few_cols);
  EXPECT_EQ(even(10000, 17), TransposeKernel::tiles);
  // 33 of level 5's tiles are a quarter of 132 SMs.
  EXPECT_EQ(even(64, 2112), TransposeKernel::small_tiles);
  EXPECT_EQ(even(64, 2113), TransposeKernel::tiles);
  EXPECT_EQ(even(704, 192), TransposeKernel::small_tiles);
  EXPECT_EQ(even(705, 192), TransposeKernel::tiles);
  EXPECT_EQ(odd(32, 1000), TransposeKernel::small_tiles);
  EXPECT_EQ(odd(33, 100000), TransposeKernel::tiles);
  EXPECT_EQ(odd(100000, 32), TransposeKernel::small_tiles);
  EXPECT_EQ(odd(100000, 33), TransposeKernel::aligned);
  // One window of 128 rows, 31 of which may be needed to move it, or tiles of 64.
  EXPECT_EQ(odd(64, 100000), TransposeKernel::tiles);
  EXPECT_EQ(odd(65, 100000), TransposeKernel::aligned);
  EXPECT_EQ(odd(97, 100000), TransposeKernel::aligned);
  EXPECT_EQ(odd(98, 100000), TransposeKernel::tiles);
  EXPECT_EQ(odd(127, 100000), TransposeKernel::tiles);
  EXPECT_EQ(odd(128, 100000), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(2000, 2000, false, true, true), TransposeKernel::on_lines);
  // Fewer than 198 windows, 1.5 per SM: 18 x 11 are as many.
  EXPECT_EQ(odd(2145, 704), TransposeKernel::tiles);
  EXPECT_EQ(odd(2146, 704), TransposeKernel::aligned);
  EXPECT_EQ(odd(2146, 640), TransposeKernel::tiles);
  EXPECT_EQ(odd(2146, 641), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(777, 999, false, false, false, 74), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(777, 999, false, false, false, 75), TransposeKernel::tiles);
  EXPECT_EQ(choose_transpose(776, 1000, true, false, false), TransposeKernel::tiles);
  // 10,485,760 elements.
  EXPECT_EQ(choose_transpose(1024, 10240, true, false, false), TransposeKernel::tiles);
  EXPECT_EQ(choose_transpose(1024, 10241, true, false, false), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(1025, 10240, true, false, false), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(kHuge, 1000, true, false, false), TransposeKernel::aligned);
  // Rows of out on sectors.
  EXPECT_EQ(choose_transpose(600, 9001, false, false, false), TransposeKernel::aligned);
  // The same of level 5's tiles.
  EXPECT_EQ(odd(704, 1152), TransposeKernel::tiles);
  EXPECT_EQ(odd(704, 1151), TransposeKernel::tiles);
  EXPECT_EQ(odd(704, 1088), TransposeKernel::small_tiles);
  EXPECT_EQ(odd(705, 1088), TransposeKernel::tiles);
  EXPECT_EQ(odd(129, 3001), TransposeKernel::small_tiles);
  // 16-byte accesses, rows of out off sectors.
  EXPECT_EQ(choose_transpose(128, 100000, true, false, false), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(124, 100000, true, false, false), TransposeKernel::tiles);
  EXPECT_EQ(choose_transpose(100000, 124, true, false, false), TransposeKernel::tiles);
  EXPECT_EQ(choose_transpose(100000, 128, true, false, false), TransposeKernel::aligned);
  EXPECT_EQ(choose_transpose(100000, 1000, true, true, false), TransposeKernel::tiles);
  EXPECT_EQ(odd(kHuge, 1000), TransposeKernel::aligned);
  EXPECT_EQ(odd(1000, kHuge), TransposeKernel::aligned);
}

RowCase row_case(std::int64_t rows, std::int64_t cols, int bytes, Access access) {
  RowCase c;
  c.rows = rows;
  c.cols = cols;
  c.element_bytes = bytes;
  c.access = access;
  return c;
}
RowKernel chosen(std::int64_t rows, std::int64_t cols, int bytes, Access access) {
  return choose_row_kernel(row_case(rows, cols, bytes, access));
}

// The same of choose_row_kernel(), for the 132 SMs of an H200.
TEST(Choices, LimitsOfChapter9) {
  constexpr Access vectors = Access::vectors, peeled = Access::peeled, single = Access::elements;
  // short_rows: 128 bytes, and 4,096 elements per SM.
  EXPECT_EQ(chosen(8448, 64, 2, vectors), RowKernel::short_rows);
  EXPECT_EQ(chosen(8447, 64, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(100000, 72, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(100000, 32, 4, vectors), RowKernel::short_rows);
  EXPECT_EQ(chosen(100000, 36, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(kHuge, 64, 2, vectors), RowKernel::short_rows);
  EXPECT_EQ(chosen(100000, 63, 2, peeled), RowKernel::on_chip);  // rows that are not adjacent
  // in_shared: rows of 4 KB to 1 MB.
  EXPECT_EQ(chosen(20000, 1024, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(20000, 1020, 4, vectors), RowKernel::on_chip);
  // fp32 where the end counts: four rounds of 64 KB per SM, eight up to 2,048 columns.
  EXPECT_EQ(chosen(16896, 1024, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(16897, 1024, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(8448, 2048, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(8449, 2048, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(4215, 2052, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(4216, 2052, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 262144, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 262148, 4, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(1000, 524288, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 524296, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(1000, 8192, 4, single), RowKernel::on_chip);  // a bulk copy needs a boundary
  RowCase old = row_case(1000, 8192, 4, vectors);
  old.has_clusters = false;
  EXPECT_EQ(choose_row_kernel(old), RowKernel::on_chip);
  // A row in one block's registers.
  old.cols = 32768;
  EXPECT_EQ(choose_row_kernel(old), RowKernel::on_chip);
  old.cols = 32772;
  EXPECT_EQ(choose_row_kernel(old), RowKernel::any_length);
  // Two bytes per element, or ends: registers, for few rounds of blocks.
  EXPECT_EQ(chosen(8448, 8192, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(8449, 8192, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 16384, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(1055, 16392, 2, vectors), RowKernel::any_length);  // from L2: four rounds
  EXPECT_EQ(chosen(1056, 16392, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(133, 24576, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(133, 24584, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(132, 20001, 2, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(133, 20001, 2, peeled), RowKernel::any_length);
  EXPECT_EQ(chosen(200, 32775, 2, peeled), RowKernel::any_length);
  EXPECT_EQ(chosen(200, 32776, 2, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 16383, 2, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(1000, 16391, 2, peeled), RowKernel::on_chip);  // 16,384 in vectors
  EXPECT_EQ(chosen(1100, 16393, 2, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(1000, 8191, 4, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(1000, 16387, 4, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(1000, 16389, 4, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(1057, 8192, 4, vectors), RowKernel::in_shared);
  // A row per SM.
  EXPECT_EQ(chosen(132, 16379, 4, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(2112, 16379, 4, peeled), RowKernel::on_chip);  // 16 rounds
  EXPECT_EQ(chosen(2113, 16379, 4, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(16, 16384, 4, vectors), RowKernel::in_shared);  // in clusters of eight
  EXPECT_EQ(chosen(17, 16384, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(66, 16384, 4, vectors), RowKernel::on_chip);
  // bf16 in the registers of a cluster, while its blocks are all resident and no fewer SMs share a
  // row than in_shared would have.
  EXPECT_EQ(chosen(66, 65536, 2, vectors), RowKernel::cluster);
  EXPECT_EQ(chosen(67, 65536, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(60, 65529, 2, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(33, 65540, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(132, 32768, 4, vectors), RowKernel::cluster);
  EXPECT_EQ(chosen(133, 32768, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(132, 16388, 4, vectors), RowKernel::cluster);
  EXPECT_EQ(chosen(80, 40000, 2, vectors), RowKernel::in_shared);  // four blocks each
  // Four rounds of 64 KB per SM.
  EXPECT_EQ(chosen(704, 12288, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(705, 12288, 4, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(2816, 12287, 4, peeled), RowKernel::on_chip);
  EXPECT_EQ(chosen(2817, 12287, 4, peeled), RowKernel::in_shared);
  EXPECT_EQ(chosen(528, 16384, 4, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(527, 16388, 4, vectors), RowKernel::in_shared);
  // bf16 just above 8,192 columns: more than two rows per SM, and up to 16 rounds.
  EXPECT_EQ(chosen(1000, 8200, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(1000, 8192, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(1000, 10240, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(1000, 10248, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(264, 8200, 2, vectors), RowKernel::on_chip);
  EXPECT_EQ(chosen(265, 8200, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(6758, 10240, 2, vectors), RowKernel::any_length);
  EXPECT_EQ(chosen(6759, 10240, 2, vectors), RowKernel::in_shared);
  EXPECT_EQ(chosen(3000, 10007, 2, peeled), RowKernel::any_length);
  EXPECT_EQ(chosen(17, 65536, 2, vectors), RowKernel::cluster);
  EXPECT_EQ(chosen(16, 65536, 2, vectors), RowKernel::in_shared);
  // Without exponentials, registers as long as they hold a row.
  RowCase norm = row_case(1000, 32771, 4, peeled);
  norm.exponentials = false;
  EXPECT_EQ(choose_row_kernel(norm), RowKernel::on_chip);
  norm.cols = 32773;
  EXPECT_EQ(choose_row_kernel(norm), RowKernel::in_shared);
  // cluster: what cannot be copied in bulk, from half of a block's registers on.
  EXPECT_EQ(chosen(1000, 16384, 4, single), RowKernel::on_chip);
  EXPECT_EQ(chosen(1000, 16385, 4, single), RowKernel::cluster);
  EXPECT_EQ(chosen(1000, 262144, 4, single), RowKernel::cluster);
  EXPECT_EQ(chosen(1000, 262145, 4, single), RowKernel::any_length);
  norm = row_case(1000, 32768, 4, single);
  norm.exponentials = false;
  EXPECT_EQ(choose_row_kernel(norm), RowKernel::on_chip);
  norm.cols = 32769;
  EXPECT_EQ(choose_row_kernel(norm), RowKernel::cluster);
}

// The same of the rules that only RMSNorm's levels ask.
TEST(Choices, LimitsOfRmsNorm) {
  const auto norm = [](std::int64_t rows, std::int64_t cols, int bytes, Access access) {
    RowCase c = row_case(rows, cols, bytes, access);
    c.exponentials = false;
    return c;
  };
  constexpr Access vectors = Access::vectors, peeled = Access::peeled;
  // Blocks that stay: 1,024 to 16,384 elements, and 240 KB of them per SM, 480 in bf16.
  EXPECT_TRUE(rows_in_order_pay(norm(990, 8192, 4, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(989, 8192, 4, vectors)));
  EXPECT_TRUE(rows_in_order_pay(norm(3960, 8192, 2, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(3959, 8192, 2, vectors)));
  EXPECT_TRUE(rows_in_order_pay(norm(100000, 16384, 4, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(100000, 16388, 4, vectors)));
  EXPECT_TRUE(rows_in_order_pay(norm(100000, 1024, 4, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(100000, 1020, 4, vectors)));
  EXPECT_TRUE(rows_in_order_pay(norm(100000, 1024, 2, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(100000, 1016, 2, vectors)));
  EXPECT_TRUE(rows_in_order_pay(norm(kHuge, 4096, 4, vectors)));
  EXPECT_FALSE(rows_in_order_pay(norm(100000, 4095, 4, peeled)));
  EXPECT_FALSE(rows_in_order_pay(row_case(100000, 4096, 4, vectors)));  // exponentials
  // Clusters that stay: beyond 16,384 elements, 240 KB of them per SM.
  EXPECT_TRUE(held_weights_pay(norm(62, 131072, 4, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(61, 131072, 4, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(1000, 16388, 4, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(1000, 16384, 4, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(31, 262144, 4, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(30, 262144, 4, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(31, 262148, 4, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(62, 262144, 2, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(61, 262144, 2, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(2000, 16392, 2, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(4000, 16384, 2, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(1000, 131072, 2, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(1000, 131080, 2, vectors)));  // half of 16 blocks' registers
  EXPECT_FALSE(held_weights_pay(norm(1000, 172024, 2, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(1000, 172032, 2, vectors)));
  EXPECT_TRUE(held_weights_pay(norm(1000, 131076, 4, vectors)));
  EXPECT_FALSE(held_weights_pay(norm(100, 262143, 4, peeled)));
  EXPECT_FALSE(held_weights_pay(row_case(100, 262144, 4, vectors)));
  for (RowCase c : {norm(100000, 4096, 4, vectors), norm(100, 262144, 4, vectors)}) {
    c.has_clusters = false;
    EXPECT_FALSE(rows_in_order_pay(c) || held_weights_pay(c));
  }
  RowCase small = norm(100, 262144, 4, vectors);
  small.large_shared = false;
  EXPECT_FALSE(held_weights_pay(small));
  small = norm(100000, 4096, 4, vectors);
  small.large_shared = false;
  EXPECT_FALSE(rows_in_order_pay(small));
  // Many long fp32 rows: level 8's blocks are smaller.
  EXPECT_EQ(choose_row_kernel(norm(2113, 16384, 4, vectors)), RowKernel::in_shared);
  EXPECT_EQ(choose_row_kernel(norm(2112, 16384, 4, vectors)), RowKernel::on_chip);
  EXPECT_EQ(choose_row_kernel(norm(10000, 8192, 4, vectors)), RowKernel::on_chip);
  EXPECT_EQ(choose_row_kernel(norm(10000, 16384, 2, vectors)), RowKernel::on_chip);
  EXPECT_EQ(choose_row_kernel(norm(10000, 16383, 4, peeled)), RowKernel::on_chip);
}

// Level 12: rows so few that every block is resident, at 132 SMs.
TEST(Choices, LimitsOfFewRows) {
  constexpr Access vectors = Access::vectors, peeled = Access::peeled;
  const auto few = [](std::int64_t rows, std::int64_t cols, int bytes, bool exponentials = true) {
    RowCase c = row_case(rows, cols, bytes, Access::vectors);
    c.exponentials = exponentials;
    return std::pair{elements_for_few_rows(c), blocks_for_few_rows(c)};
  };
  using Both = std::pair<int, int>;  // elements per thread, blocks per row
  const auto elements = [&](std::int64_t rows, std::int64_t cols, int bytes,
                            bool exponentials = true) {
    return few(rows, cols, bytes, exponentials).first;
  };
  EXPECT_EQ(elements(1, 8192, 4), 0);
  EXPECT_EQ(few(1, 8196, 4), (Both{16, 3}));
  EXPECT_EQ(few(1, 12288, 4), (Both{16, 3}));
  EXPECT_EQ(few(1, 12292, 4), (Both{16, 4}));
  EXPECT_EQ(few(1, 65536, 4), (Both{16, 16}));
  EXPECT_EQ(elements(1, 65540, 4), 0);
  // Up to 16,384 columns: two rows per SM in fp32, one and a half in bf16 and without exponentials.
  EXPECT_EQ(elements(264, 16384, 4), 16);
  EXPECT_EQ(elements(265, 16384, 4), 0);
  EXPECT_EQ(elements(198, 16384, 2), 16);
  EXPECT_EQ(elements(199, 16384, 2), 0);
  EXPECT_EQ(elements(198, 16384, 4, false), 16);
  EXPECT_EQ(elements(199, 16384, 4, false), 0);
  // Up to 32,768: four blocks per SM, then 32 elements per thread (fp32 softmax: 16).
  EXPECT_EQ(few(66, 32768, 2), (Both{16, 8}));
  EXPECT_EQ(few(67, 32768, 2), (Both{32, 4}));
  EXPECT_EQ(few(264, 32768, 2), (Both{32, 4}));
  EXPECT_EQ(elements(265, 32768, 2), 0);
  EXPECT_EQ(few(264, 32768, 4), (Both{16, 8}));
  EXPECT_EQ(elements(265, 32768, 4), 0);
  EXPECT_EQ(few(67, 32768, 4, false), (Both{32, 4}));
  EXPECT_EQ(few(198, 32768, 4, false), (Both{32, 4}));
  EXPECT_EQ(elements(199, 32768, 4, false), 0);
  // Beyond: while all blocks are resident.
  EXPECT_EQ(few(33, 65536, 2), (Both{16, 16}));
  EXPECT_EQ(elements(34, 65536, 2), 0);
  // RMSNorm: twice the blocks, down to 4 KB each, four per SM.
  EXPECT_EQ(few(1, 16384, 4, false), (Both{16, 16}));
  EXPECT_EQ(few(1, 16384, 2, false), (Both{16, 8}));
  EXPECT_EQ(few(33, 16384, 4, false), (Both{16, 16}));
  EXPECT_EQ(few(34, 16384, 4, false), (Both{16, 8}));
  EXPECT_EQ(few(66, 16384, 4, false), (Both{16, 8}));
  EXPECT_EQ(few(67, 16384, 4, false), (Both{16, 4}));
  RowCase c = row_case(1, 16383, 4, peeled);
  EXPECT_EQ(elements_for_few_rows(c), 0);
  c = row_case(1, 16384, 4, vectors);
  c.has_clusters = false;
  EXPECT_EQ(elements_for_few_rows(c), 0);
  // Short rows: 1,280 threads per SM, below 16 columns half as many; softmax only.
  const auto single = [](std::int64_t rows, std::int64_t cols) {
    return single_accesses_pay(row_case(rows, cols, 2, Access::peeled));
  };
  EXPECT_TRUE(single(21120, 17));
  EXPECT_FALSE(single(21121, 17));
  EXPECT_TRUE(single(21120, 16));
  // Eight lanes per row up to 640 threads per SM, then two up to 1,536.
  const auto lanes = [](std::int64_t rows, std::int64_t cols, Access access, bool packed) {
    RowCase c = row_case(rows, cols, 4, access);
    c.packed = packed;
    return single_accesses_pay(c) ? lanes_of_single_accesses(c) : 0;
  };
  EXPECT_EQ(lanes(10560, 7, peeled, true), 8);
  EXPECT_EQ(lanes(10561, 7, peeled, true), 2);
  EXPECT_EQ(lanes(50000, 3, peeled, true), 2);
  EXPECT_EQ(lanes(101376, 7, peeled, true), 2);
  EXPECT_EQ(lanes(101377, 7, peeled, true), 0);
  EXPECT_EQ(lanes(50000, 9, peeled, true), 0);
  EXPECT_EQ(lanes(50000, 7, peeled, false), 0);
  EXPECT_EQ(lanes(50000, 8, vectors, true), 0);
  EXPECT_TRUE(single(10560, 15));
  EXPECT_FALSE(single(10561, 15));
  EXPECT_TRUE(single(21120, 32));
  EXPECT_TRUE(single(10560, 33));
  EXPECT_FALSE(single(10561, 33));
  EXPECT_TRUE(single(10560, 64));
  EXPECT_TRUE(single(5280, 65));
  EXPECT_FALSE(single(5281, 65));
  EXPECT_TRUE(single(5280, 128));
  EXPECT_FALSE(single(1, 129));
  EXPECT_FALSE(single(kHuge, 17));
  c = row_case(1, 17, 2, peeled);
  c.exponentials = false;
  EXPECT_FALSE(single_accesses_pay(c));
}

// What level 12 plans holds the row, and no cluster is too large.
TEST(Choices, FewRowsHoldTheRow) {
  for_all_rows([](const RowCase& c) {
    if (single_accesses_pay(c)) {
      EXPECT_LE(c.cols, 4 * lanes_of_single_accesses(c));
    }
    const int elements = elements_for_few_rows(c);
    if (elements == 0) return;
    const int blocks = blocks_for_few_rows(c);
    EXPECT_TRUE(blocks >= 2 && blocks <= 16) << c.rows << "x" << c.cols;  // a cluster
    EXPECT_LE(c.cols, std::int64_t{256} * elements * blocks) << c.rows << "x" << c.cols;
  });
}

// Softmax: clusters stay where level 8 has the largest ones, and several rows for each.
TEST(Choices, LimitsOfStayingClusters) {
  constexpr Access vectors = Access::vectors, peeled = Access::peeled;
  const auto stay = [](std::int64_t rows, std::int64_t cols, int bytes, Access access) {
    return staying_clusters_pay(row_case(rows, cols, bytes, access));
  };
  EXPECT_TRUE(stay(1000, 131076, 4, vectors));
  EXPECT_FALSE(stay(1000, 131072, 4, vectors));
  EXPECT_TRUE(stay(31, 262144, 4, vectors));
  EXPECT_FALSE(stay(30, 262144, 4, vectors));
  EXPECT_FALSE(stay(31, 262148, 4, vectors));
  EXPECT_TRUE(stay(124, 262144, 2, vectors));
  EXPECT_FALSE(stay(123, 262144, 2, vectors));
  EXPECT_TRUE(stay(1000, 213000, 2, vectors));
  EXPECT_FALSE(stay(1000, 212992, 2, vectors));
  EXPECT_TRUE(stay(1024, 262144, 2, vectors));
  // 960 KB, 32 rounds of 64 KB per SM: 264 rows of 1 MB.
  EXPECT_TRUE(stay(264, 262144, 4, vectors));
  EXPECT_FALSE(stay(265, 262144, 4, vectors));
  EXPECT_TRUE(stay(1000, 245760, 4, vectors));
  EXPECT_FALSE(stay(1000, 245764, 4, vectors));
  EXPECT_FALSE(stay(1000, 262143, 4, peeled));
  // bf16 rows of 32,769 to 131,072 elements that fill level 8's slices to less than 15/16.
  EXPECT_TRUE(stay(7281, 36864, 2, vectors));
  EXPECT_TRUE(stay(5368, 50000, 2, vectors));
  EXPECT_TRUE(stay(2621, 102400, 2, vectors));
  EXPECT_TRUE(stay(327, 102400, 2, vectors));
  EXPECT_FALSE(stay(316, 102400, 2, vectors));
  EXPECT_TRUE(stay(317, 102400, 2, vectors));
  EXPECT_FALSE(stay(8000, 32768, 2, vectors));
  EXPECT_TRUE(stay(8000, 32776, 2, vectors));
  EXPECT_TRUE(stay(4096, 61432, 2, vectors));
  EXPECT_FALSE(stay(4096, 61440, 2, vectors));
  EXPECT_FALSE(stay(4096, 65536, 2, vectors));
  EXPECT_TRUE(stay(4096, 65544, 2, vectors));
  EXPECT_TRUE(stay(2048, 122872, 2, vectors));
  EXPECT_FALSE(stay(2048, 122880, 2, vectors));
  EXPECT_FALSE(stay(2048, 131072, 2, vectors));
  EXPECT_FALSE(stay(2048, 131080, 2, vectors));
  EXPECT_FALSE(stay(5368, 50000, 4, vectors));
  EXPECT_FALSE(stay(5368, 50001, 2, peeled));
  // Level 8's two slices of 48 KB, from 32 rounds of 64 KB per SM on: 3,379 rows of 80 KB.
  EXPECT_TRUE(stay(819, 40960, 2, vectors));
  EXPECT_TRUE(stay(3379, 40960, 2, vectors));
  EXPECT_FALSE(stay(3380, 40960, 2, vectors));
  EXPECT_FALSE(stay(6553, 40960, 2, vectors));
  EXPECT_TRUE(stay(6553, 40952, 2, vectors));
  EXPECT_TRUE(two_medium_slices_pay(40960));
  EXPECT_FALSE(two_medium_slices_pay(40952));
  EXPECT_TRUE(two_medium_slices_pay(46072));
  EXPECT_FALSE(two_medium_slices_pay(46080));
  EXPECT_FALSE(two_medium_slices_pay(49160));
  EXPECT_EQ(blocks_of_level_7(16384), 1);
  EXPECT_EQ(blocks_of_level_7(16385), 2);
  EXPECT_EQ(blocks_of_level_7(131072), 8);
  EXPECT_EQ(blocks_of_level_7(131073), 16);
  RowCase c = row_case(4096, 61432, 2, vectors);
  EXPECT_TRUE(small_clusters_pay(c));
  c.has_clusters = false;
  EXPECT_FALSE(small_clusters_pay(c));
  c = row_case(100, 262144, 4, vectors);
  EXPECT_TRUE(staying_clusters_pay(c));
  c.exponentials = false;
  EXPECT_FALSE(staying_clusters_pay(c));
  c.exponentials = true;
  c.has_clusters = false;
  EXPECT_FALSE(staying_clusters_pay(c));
  c.has_clusters = true;
  c.large_shared = false;
  EXPECT_FALSE(staying_clusters_pay(c));
}

TEST(Choices, BlocksPerRow) {
  const auto blocks = [](std::int64_t rows, std::int64_t cols) {
    return cluster_for_few_rows(row_case(rows, cols, 4, Access::vectors));
  };
  EXPECT_EQ(blocks(1, 16380), 1);  // below 64 KB
  EXPECT_EQ(blocks(1, 16384), 8);  // of 8 KB each
  EXPECT_EQ(blocks(1, 32764), 8);
  EXPECT_EQ(blocks(1, 32768), 16);
  EXPECT_EQ(blocks(1, 1 << 20), 16);
  // No more blocks than SMs: 132.
  EXPECT_EQ(blocks(33, 32768), 4);
  EXPECT_EQ(blocks(34, 32768), 2);
  EXPECT_EQ(blocks(66, 32768), 2);
  EXPECT_EQ(blocks(67, 32768), 1);
  EXPECT_EQ(blocks(kHuge, 32768), 1);
}

// ---- library/choose.hpp ------------------------------------------------------------------------

using cookbook::library::Recording;
using cookbook::library::Shape;

struct Named {
  const char* name;
  double us_per_k;
};
constexpr Named kNamed[] = {{"slow", 3.0}, {"fast", 1.0}, {"never", HUGE_VAL}};
double by_arithmetic(const Named& candidate, const Shape& shape) {
  return candidate.us_per_k * static_cast<double>(shape.extents[1]);
}

TEST(Choose, ByArithmeticAlone) {
  const auto order = ranked(kNamed, Shape{{4, 8}, "NT"}, by_arithmetic, nullptr);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_STREQ(order[0].candidate->name, "fast");
  EXPECT_EQ(order[0].us, 8.0);
  EXPECT_EQ(order[0].predicted_us, 8.0);
  EXPECT_STREQ(order[1].candidate->name, "slow");
  EXPECT_STREQ(order[2].candidate->name, "never");  // does not support the shape
}

TEST(Choose, DistanceOfShapes) {
  EXPECT_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{1000, 3}, "NT"}), 0);
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{2000, 3}, "NT"}), std::log(2.0));
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 8}, "NT"}, Shape{{125, 1}, "NT"}),
                   std::sqrt(2.0) * std::log(8.0));
  EXPECT_DOUBLE_EQ(distance(Shape{{1000, 3}, "NT"}, Shape{{1000, 3}, "NN"}), 1);
  EXPECT_EQ(distance(Shape{{0, 1}, ""}, Shape{{1, 1}, ""}), 0);
}

TEST(Choose, WhatWasMeasuredNearbyOverrules) {
  const Recording recording("# us\n4 16 NT slow 12 fast 64 other 1\n\n", 2);
  // Measured 12 where 48 were predicted, and 64 where 16 were: factors of four.
  const auto order = ranked(kNamed, Shape{{4, 16}, "NT"}, by_arithmetic, &recording);
  EXPECT_DOUBLE_EQ(order[0].us, 16 * 1.0 * std::pow(4, 1 / 3.0));  // one part in three
  EXPECT_DOUBLE_EQ(order[1].us, 16 * 3.0 / std::pow(4, 1 / 3.0));
  EXPECT_EQ(order[0].predicted_us, 16.0);
  const Recording often(
      "4 16 NT slow 12 fast 64\n4 16 NT slow 12 fast 64\n"
      "4 16 NT slow 12 fast 64\n4 16 NT slow 12 fast 64\n",
      2);
  EXPECT_STREQ(ranked(kNamed, Shape{{4, 16}, "NT"}, by_arithmetic, &often)[0].candidate->name,
               "slow");
  // The farther, the less; far away and in another layout only arithmetic is left.
  EXPECT_STREQ(ranked(kNamed, Shape{{4, 64}, "NT"}, by_arithmetic, &often)[0].candidate->name,
               "fast");
  const double weight = std::exp(-1 / 0.4);
  EXPECT_DOUBLE_EQ(ranked(kNamed, Shape{{4, 16}, "NN"}, by_arithmetic, &recording)[0].us,
                   16 * std::pow(4, weight / (2 + weight)));
}

TEST(Choose, TheNearestTwelveCount) {
  std::string lines;
  for (int i = 1; i <= 20; ++i) lines += "4 " + std::to_string(1000 * i) + " NT fast 1\n";
  const Recording recording(lines, 2);
  const auto near = recording.near(Shape{{4, 20000}, "NT"});
  ASSERT_EQ(near.size(), 12u);
  EXPECT_EQ(near[0].second->shape.extents[1], 20000);
  EXPECT_EQ(near[0].first, 1);
  EXPECT_EQ(near[11].second->shape.extents[1], 9000);
}

TEST(Choose, ARecordingMustHaveItsForm) {
  for (const char* wrong : {"4 16 NT", "4 16 NT slow", "4 16 NT slow fast 3", "4 NT slow 3"}) {
    EXPECT_THROW(Recording(wrong, 2), std::invalid_argument) << wrong;
  }
  EXPECT_TRUE(Recording("# nothing\n", 2).entries().empty());
}

}  // namespace
