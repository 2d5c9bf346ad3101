// SPDX-License-Identifier: MIT
// Which kernel transposes which shape. Host code only: tests/choices_test.cpp asks it about a grid
// of shapes, and the chapter's notes.md has the rule as a table.
#pragma once

#include <cstdint>

namespace cookbook::transpose {

/// The kernels among which level 7 chooses: its own, for few rows or columns; level 2's; level 5's;
/// level 6's, without and with windows that move.
enum class TransposeKernel { few_rows, few_cols, small_tiles, tiles, on_lines, aligned };

/// Up to here one tile of level 7 covers the short extent. Beyond, the tiles of levels 2 and 5 were
/// measured to be faster.
constexpr std::int64_t kNarrow = 16;
/// Up to this number of elements, a thread of level 7 transposes one of them: a launch of few
/// blocks waits for latencies, and each further element adds instructions.
constexpr std::int64_t kTinyMatrix = 1 << 16;
/// The tile of level 2.
constexpr std::int64_t kSmallTile = 32;
/// Level 6's windows have 128 rows, or 64 where nothing moves; level 4's and 5's tiles 64. A
/// transpose of fewer rows or columns would leave level 6's partly empty.
constexpr std::int64_t kWholeTile = 128, kTile = 64;
/// Up to this number of elements, 42 MB, L2 holds partly written sectors until their other writer
/// comes, and level 5's 16-byte accesses are faster than level 6's windows.
constexpr std::int64_t kHeldByL2 = 10 << 20;

/// The kernel for rows x cols. `vectors`: level 5's accesses have 16 bytes. `on_sectors`,
/// `on_lines`: every row of `out` starts on a boundary of 32 or 128 bytes.
constexpr TransposeKernel choose_transpose(std::int64_t rows, std::int64_t cols, bool vectors,
                                           bool on_sectors, bool on_lines, int sm_count = 132) {
  if (rows <= kNarrow && rows <= cols) return TransposeKernel::few_rows;
  if (cols <= kNarrow) return TransposeKernel::few_cols;
  if (!vectors && (rows <= kSmallTile || cols <= kSmallTile)) return TransposeKernel::small_tiles;
  // Windows that move need up to 31 rows more. Fewer than 1.5 per SM: smaller tiles end sooner.
  const std::int64_t windows = (rows + 31 + kWholeTile - 1) / kWholeTile;  // of a column
  const std::int64_t across = (cols + kTile - 1) / kTile;
  const bool few = 2 * windows * across < 3 * sm_count;
  const std::int64_t tiles = (rows + kTile - 1) / kTile;
  if (vectors) {  // no sector has two writers where rows start on sectors
    if (4 * tiles * across <= sm_count) return TransposeKernel::small_tiles;
    const bool is_short = rows < kWholeTile || cols < kWholeTile;
    const bool is_held = rows <= kHeldByL2 / cols;
    return on_sectors || is_short || few || is_held ? TransposeKernel::tiles
                                                    : TransposeKernel::aligned;
  }
  // Level 4 has as many rows of tiles, or fewer.
  if (2 * tiles * across < 3 * sm_count) return TransposeKernel::small_tiles;
  if (few || (rows < kWholeTile && windows * kWholeTile > tiles * kTile))
    return TransposeKernel::tiles;
  if (on_sectors && !on_lines) return TransposeKernel::tiles;  // no sector has two writers
  return on_lines ? TransposeKernel::on_lines : TransposeKernel::aligned;
}

constexpr bool is_narrow(TransposeKernel kernel) {
  return kernel == TransposeKernel::few_rows || kernel == TransposeKernel::few_cols;
}

}  // namespace cookbook::transpose
