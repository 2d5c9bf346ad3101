// SPDX-License-Identifier: MIT
// Which kernel computes which rows. Host code only: tests/choices_test.cpp asks it about a grid of
// shapes, and the chapter's README has the rule as a table.
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
};

constexpr std::int64_t kShortRow = 64;            // elements: beyond, level 5 was measured as fast
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

constexpr RowKernel choose_row_kernel(const RowCase& c) {
  const int pack = 16 / c.element_bytes;
  const std::int64_t row_bytes = c.cols * c.element_bytes;
  if (c.cols <= kShortRow) {
    // A thread of short_rows has several rows: there must be enough of them for all SMs.
    const bool many = c.rows * c.cols >= std::int64_t{4096} * c.sm_count;
    if (c.access == Access::vectors && many) return RowKernel::short_rows;
    if (c.access == Access::peeled && c.packed) return RowKernel::packed_rows;
  }
  const std::int64_t in_vectors = c.access == Access::elements ? c.cols : c.cols - c.cols % pack;
  const bool fits_registers = in_vectors <= kRegisterRow;
  const bool fits_shared = c.has_clusters && c.access != Access::elements &&
                           row_bytes >= kSharedRow && row_bytes <= kLongSharedRow;
  if (fits_shared) {
    if (!fits_registers || cluster_for_few_rows(c) > 1) return RowKernel::in_shared;
    // Without exponentials, registers are no obstacle. Where in_shared computes two per element,
    // for bf16 and at the ends of peeled rows, the time after the last load matters if blocks are
    // replaced only a few times. Few rows: one load per block, and the shortest way from it wins.
    const bool few_rounds = c.rows * row_bytes <= std::int64_t{16} * 64 * 1024 * c.sm_count;
    const bool more_work = c.element_bytes == 2 || c.access == Access::peeled;
    const bool few_rows = c.rows * 2 <= c.sm_count;
    const bool in_registers = (more_work && c.cols <= 8192 && few_rounds) || few_rows;
    return c.exponentials && !in_registers ? RowKernel::in_shared : RowKernel::on_chip;
  }
  const bool divided = c.exponentials && c.cols > kRegisterRow / 2;  // two blocks per SM: level 7
  if (c.has_clusters && c.cols <= kClusterRow && (divided || !fits_registers)) {
    return RowKernel::cluster;
  }
  return fits_registers ? RowKernel::on_chip : RowKernel::any_length;
}

}  // namespace cookbook::softmax
