// SPDX-License-Identifier: MIT
// Which kernel transposes which shape. Host code only: tests/choices_test.cpp asks it about a grid
// of shapes, and the chapter's README has the rule as a table.
#pragma once

#include <cstdint>

namespace cookbook::transpose {

/// The kernels among which level 7 chooses.
enum class TransposeKernel { few_rows, few_cols, tiles, on_lines, aligned };

/// Up to here one tile of level 7 covers the short extent.
constexpr std::int64_t kMostRows = 32, kMostCols = 32;
/// Level 6's tiles have 128 rows and 64 columns, or 64 and 64. They would be partly empty; the
/// 64 x 64 tiles of level 5 were measured to be faster.
constexpr std::int64_t kWholeTile = 128;

/// The kernel for rows x cols. `on_lines`: every row of `out` starts on a line boundary.
constexpr TransposeKernel choose_transpose(std::int64_t rows, std::int64_t cols, bool on_lines) {
  if (rows <= kMostRows && rows <= cols) return TransposeKernel::few_rows;
  if (cols <= kMostCols) return TransposeKernel::few_cols;
  if (rows < kWholeTile || cols < kWholeTile) return TransposeKernel::tiles;
  return on_lines ? TransposeKernel::on_lines : TransposeKernel::aligned;
}

constexpr bool is_narrow(TransposeKernel kernel) {
  return kernel == TransposeKernel::few_rows || kernel == TransposeKernel::few_cols;
}

}  // namespace cookbook::transpose
