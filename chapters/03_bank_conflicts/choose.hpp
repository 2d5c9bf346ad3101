// SPDX-License-Identifier: MIT
// Which kernel transposes which shape. Host code only: tests/choices_test.cpp asks it about a grid
// of shapes, and the chapter's README has the rule as a table.
#pragma once

#include <cstdint>

namespace cookbook::transpose {

/// The kernels among which level 7 chooses: its own, for few rows or columns; level 2's; level 5's;
/// level 6's, without and with windows that move.
enum class TransposeKernel { few_rows, few_cols, small_tiles, tiles, on_lines, aligned };

/// Up to here one tile of level 7 covers the short extent. Beyond, the tiles of levels 2 and 5 were
/// measured to be faster; where accesses have 16 bytes, level 5's already from fewer on.
constexpr std::int64_t kNarrow = 16, kNarrowVectors = 8;
/// The tile of level 2.
constexpr std::int64_t kSmallTile = 32;
/// Level 6's tiles have 128 rows and 64 columns, or 64 and 64. They would be partly empty; the
/// 64 x 64 tiles of level 5 were measured to be faster.
constexpr std::int64_t kWholeTile = 128;

/// The kernel for rows x cols. `vectors`: level 5's accesses have 16 bytes. `on_lines`: every row
/// of `out` starts on a line boundary.
constexpr TransposeKernel choose_transpose(std::int64_t rows, std::int64_t cols, bool vectors,
                                           bool on_lines) {
  const std::int64_t narrow = vectors ? kNarrowVectors : kNarrow;
  if (rows <= narrow && rows <= cols) return TransposeKernel::few_rows;
  if (cols <= narrow) return TransposeKernel::few_cols;
  if (!vectors && (rows <= kSmallTile || cols <= kSmallTile)) return TransposeKernel::small_tiles;
  if (rows < kWholeTile || cols < kWholeTile) return TransposeKernel::tiles;
  return on_lines ? TransposeKernel::on_lines : TransposeKernel::aligned;
}

constexpr bool is_narrow(TransposeKernel kernel) {
  return kernel == TransposeKernel::few_rows || kernel == TransposeKernel::few_cols;
}

}  // namespace cookbook::transpose
