// SPDX-License-Identifier: MIT
// Which kernel computes which rows. Host code only: tests/choices_test.cpp asks it about a grid of
// shapes, and the chapter's notes.md has the rule as a table.
#pragma once

#include <cstdint>

namespace cookbook::softmax {

/// How a kernel accesses rows: all of it 16 bytes at a time; peeled, which is 16 bytes at a time
/// between a row's boundaries and single elements before and after; or in single elements.
enum class Access { vectors, peeled, elements };

/// The kernels among which the last level chooses.
enum class RowKernel { short_rows, packed_rows, on_chip, in_shared, cluster, any_length };

/// What the choice depends on.
struct RowCase {
  std::int64_t rows = 0, cols = 0;
  int element_bytes = 4;
  Access access = Access::vectors;
  bool packed = false;       // row r + 1 begins where row r ends, in `in` and in `out`
  bool exponentials = true;  // two per element in in_shared; RMSNorm has none
  int sm_count = 132;
  bool has_clusters = true;  // compute capability 9.0
  bool large_shared = true;  // 200 KB and more per block
};

// Beyond, level 5 was measured as fast: 128 bytes are 8 accesses, one per lane of its.
constexpr std::int64_t kShortBytes = 128;
constexpr std::int64_t kSingleRow = 128;          // elements, with single accesses
constexpr std::int64_t kPackedRow = 64;           // elements, off boundaries
constexpr std::int64_t kRegisterRow = 32768;      // elements: longest row in one block's registers
constexpr std::int64_t kClusterRow = 262144;      // elements: in the registers of 16 blocks
constexpr std::int64_t kSharedRow = 4096;         // bytes: shortest row for bulk copies
constexpr std::int64_t kLongSharedRow = 1 << 20;  // bytes: in the shared memory of 16 blocks

/// Blocks per row, so that few rows still occupy the SMs; 1 for many rows, and for rows below 64
/// KB, which one block was measured to finish first. A block has at least 8 KB of the row, the
/// piece of one bulk copy.
constexpr int cluster_for_few_rows(const RowCase& c) {
  if (c.cols * c.element_bytes < 65536) return 1;
  int cluster = 1;
  while (cluster < 16 && c.rows * cluster * 2 <= c.sm_count &&
         c.cols * c.element_bytes >= cluster * 2 * 8192) {
    cluster *= 2;
  }
  return cluster;
}

/// Whether the rows fill all SMs, with 64 KB each, more than `rounds` times.
constexpr bool more_rounds_than(int rounds, const RowCase& c) {
  return c.rows * c.cols * c.element_bytes > std::int64_t{rounds} * 64 * 1024 * c.sm_count;
}

/// Softmax of up to 8 columns off boundaries, without gaps: two lanes per row are so few threads
/// that a hundred thousand rows are resident. Fewer rows take eight lanes, as below.
constexpr bool two_lanes_pay(const RowCase& c) {
  return c.exponentials && c.cols <= 8 && c.access == Access::peeled && c.packed &&
         c.rows * 8 > std::int64_t{640} * c.sm_count &&
         c.rows * 2 <= std::int64_t{1536} * c.sm_count;
}

/// Lanes per row with single accesses, four elements each.
constexpr int lanes_of_single_accesses(const RowCase& c) {
  if (two_lanes_pay(c)) return 2;
  return c.cols <= 32 ? 8 : c.cols <= 64 ? 16 : 32;
}

/// Softmax of so few short rows that all threads are resident and the launch is a few microseconds.
/// Then the shortest code wins: one access per element, no shared memory, no barrier.
constexpr bool single_accesses_pay(const RowCase& c) {
  if (two_lanes_pay(c)) return true;
  const std::int64_t per_sm = c.cols >= 16 ? 1280 : 640;  // threads
  return c.exponentials && c.cols <= kSingleRow &&
         c.rows * lanes_of_single_accesses(c) <= per_sm * c.sm_count;
}

constexpr std::int64_t kFewRow = 65536;  // elements: 16 blocks of 4,096

/// Few rows beyond 8,192 elements: elements per thread of blocks of 256 threads, which hold a row
/// in their registers; 0 where other kernels are as fast. 16 elements are the shorter code and more
/// SMs per row; with 32, more of the blocks are resident.
constexpr int elements_for_few_rows(const RowCase& c) {
  if (!c.has_clusters || c.access != Access::vectors) return 0;
  if (c.cols <= 8192 || c.cols > kFewRow) return 0;
  const std::int64_t blocks = (c.cols + 4095) / 4096, resident = 4 * c.sm_count;
  const bool one_and_a_half = 2 * c.rows <= 3 * c.sm_count;  // rows per SM
  if (c.cols <= 16384) {
    const bool fp32_softmax = c.exponentials && c.element_bytes == 4;
    return one_and_a_half || (fp32_softmax && c.rows <= 2 * c.sm_count) ? 16 : 0;
  }
  if (c.rows * blocks <= resident) return 16;
  if (c.cols > 32768) return 0;
  if (!c.exponentials) return one_and_a_half ? 32 : 0;
  if (c.rows > 2 * c.sm_count) return 0;
  return c.element_bytes == 4 ? 16 : 32;
}

/// Blocks per row for that. RMSNorm has so little code that more blocks pay, 4 KB each and more.
constexpr int blocks_for_few_rows(const RowCase& c) {
  const int elements = elements_for_few_rows(c);
  int blocks = elements == 16 ? static_cast<int>((c.cols + 4095) / 4096)
                              : static_cast<int>((c.cols + 8191) / 8192);
  while (!c.exponentials && elements == 16 && 2 * blocks <= 16 &&
         c.rows * 2 * blocks <= 4 * c.sm_count && c.cols * c.element_bytes >= 8192 * blocks) {
    blocks *= 2;
  }
  return blocks;
}

/// Level 7's blocks per row: a power of two, 16,384 elements each.
constexpr std::int64_t blocks_of_level_7(std::int64_t cols) {
  std::int64_t blocks = 1;
  while (blocks * 16384 < cols) blocks *= 2;
  return blocks;
}

/// Whether there are rows enough for blocks that stay for several. bf16 is twice the elements.
constexpr bool enough_to_stay(const RowCase& c) {
  const std::int64_t per_sm = (c.element_bytes == 4 ? 240 : 480) * 1024;  // bytes of rows
  return c.rows * c.cols * c.element_bytes >= per_sm * c.sm_count;
}

/// RMSNorm: whether blocks that stay take the rows in order. 16-byte accesses, one block per row.
constexpr bool rows_in_order_pay(const RowCase& c) {
  return c.has_clusters && c.large_shared && !c.exponentials && c.access == Access::vectors &&
         c.cols >= 1024 && c.cols <= 16384 && enough_to_stay(c);
}

/// RMSNorm: the same for rows that a cluster holds, from 240 KB of rows per SM on.
constexpr bool held_weights_pay(const RowCase& c) {
  const bool enough = c.rows * c.cols * c.element_bytes >= std::int64_t{240} * 1024 * c.sm_count;
  // Blocks of 512 threads, one per SM: half full, they are slower than level 8's small slices.
  const bool half_full = c.element_bytes == 2 && c.cols > 131072 && c.cols < 172032;
  return c.has_clusters && c.large_shared && !c.exponentials && c.access == Access::vectors &&
         c.cols > 16384 && c.cols <= kClusterRow && enough && !half_full;
}

/// bf16: whether as many of level 8's slices of 16,384 elements as a row needs are full, but for a
/// sixteenth.
constexpr bool full_slices(std::int64_t cols) {
  const std::int64_t held = (cols + 16383) / 16384 * 16384;
  return 16 * cols >= 15 * held;
}

/// bf16 softmax: whether level 8 has two slices of 48 KB instead of three of 32 KB, not full.
constexpr bool two_medium_slices_pay(std::int64_t cols) {
  return cols >= 40960 && cols <= 49152 && !full_slices(cols);
}

constexpr std::int64_t kThreeBlocksRow = 65536;   // bf16 elements: in 8 blocks, three per SM
constexpr std::int64_t kSmallBlocksRow = 131072;  // bf16 elements: in 16 blocks of 256 threads

/// Softmax of bf16 rows that fill level 8's slices only in part: whether small clusters stay.
constexpr bool small_clusters_pay(const RowCase& c) {
  const bool medium = two_medium_slices_pay(c.cols) && more_rounds_than(32, c);
  return c.has_clusters && c.large_shared && c.exponentials && c.access == Access::vectors &&
         c.element_bytes == 2 && c.cols > kRegisterRow && c.cols <= kSmallBlocksRow &&
         enough_to_stay(c) && !full_slices(c.cols) && !medium;
}

/// Softmax of rows for which level 8 has its largest clusters: whether clusters stay. In bf16 short
/// slices do not pay. Where level 8's slices are full and the rows many, it is as fast.
constexpr bool staying_clusters_pay(const RowCase& c) {
  if (small_clusters_pay(c)) return true;
  const std::int64_t shortest = c.element_bytes == 2 ? 212993 : 131073;
  const bool full = c.cols * c.element_bytes > (960 << 10) && more_rounds_than(32, c);
  return c.has_clusters && c.large_shared && c.exponentials && c.access == Access::vectors &&
         c.cols >= shortest && c.cols <= kClusterRow && enough_to_stay(c) && !full;
}

constexpr RowKernel choose_row_kernel(const RowCase& c) {
  const int pack = 16 / c.element_bytes;
  const std::int64_t row_bytes = c.cols * c.element_bytes;
  // A thread of short_rows has several rows: there must be enough of them for all SMs.
  const bool many = c.rows * c.cols >= std::int64_t{4096} * c.sm_count;
  if (row_bytes <= kShortBytes && c.access == Access::vectors && many) {
    return RowKernel::short_rows;
  }
  if (c.cols <= kPackedRow && c.access == Access::peeled && c.packed) {
    return RowKernel::packed_rows;
  }
  const std::int64_t in_vectors = c.access == Access::elements ? c.cols : c.cols - c.cols % pack;
  const bool fits_registers = in_vectors <= kRegisterRow;
  const bool fits_shared = c.has_clusters && c.access != Access::elements &&
                           row_bytes >= kSharedRow && row_bytes <= kLongSharedRow;
  if (fits_shared) {
    const int cluster = cluster_for_few_rows(c);
    // Level 7 has a row in registers: one exponential per element instead of two. That counts where
    // all blocks are resident, so that no later row's load hides the second, and where no fewer SMs
    // share a row than in in_shared. fp32 beyond the registers of two blocks has fewer elements.
    const std::int64_t blocks = blocks_of_level_7(c.cols);
    if (c.exponentials && c.access == Access::vectors && blocks > 1 && c.cols <= kClusterRow &&
        (c.element_bytes == 2 || fits_registers) && cluster <= blocks &&
        c.rows * blocks <= 2 * c.sm_count) {
      return RowKernel::cluster;
    }
    // A bf16 row that L2 holds for its second pass: level 4's blocks end sooner than level 8's.
    const std::int64_t longest = c.access == Access::peeled ? kRegisterRow : 24576;
    if (c.exponentials && c.element_bytes == 2 && in_vectors > kRegisterRow / 2 &&
        in_vectors <= longest && c.rows > c.sm_count && !more_rounds_than(4, c)) {
      return RowKernel::any_length;
    }
    // A row of 64 KB is computed sooner by one block of level 5 than by two or four of level 8.
    const bool one_block = c.exponentials && c.cols <= 16384 && cluster < 8;
    if (!fits_registers || (cluster > 1 && !one_block)) return RowKernel::in_shared;
    // Without exponentials, registers are no obstacle. Where in_shared computes two per element,
    // for bf16 and at the ends of peeled rows, the time after the last load matters if blocks are
    // replaced only a few times. Few rows: one load per block, and the shortest way from it wins.
    const bool few_rounds = !more_rounds_than(16, c);
    const bool more_work = c.element_bytes == 2 || c.access == Access::peeled;
    const bool half_blocks = in_vectors <= kRegisterRow / 2;
    const int rounds = c.cols <= 2048 ? 8 : 4;
    const bool very_few = c.rows <= c.sm_count || (half_blocks && !more_rounds_than(rounds, c));
    const bool in_registers = (more_work && half_blocks && few_rounds) || very_few;
    // Level 5's blocks of 512 threads would be little more than half full. Once an SM has more than
    // two rows, level 4's smaller blocks are faster: L2 holds what they read twice.
    if (c.exponentials && c.element_bytes == 2 && c.cols > 8192 && c.cols <= 10240 &&
        c.rows > 2 * c.sm_count && few_rounds) {
      return RowKernel::any_length;
    }
    if (c.exponentials) return in_registers ? RowKernel::on_chip : RowKernel::in_shared;
    // Blocks of 512 threads and more in level 5, of 256 in level 8; bf16 is half the bytes.
    const bool large_blocks = c.element_bytes == 4 && c.access == Access::vectors && c.cols > 8192;
    return large_blocks && !few_rounds ? RowKernel::in_shared : RowKernel::on_chip;
  }
  const bool divided = c.exponentials && c.cols > kRegisterRow / 2;  // two blocks per SM: level 7
  if (c.has_clusters && c.cols <= kClusterRow && (divided || !fits_registers)) {
    return RowKernel::cluster;
  }
  return fits_registers ? RowKernel::on_chip : RowKernel::any_length;
}

}  // namespace cookbook::softmax
