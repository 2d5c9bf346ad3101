// SPDX-License-Identifier: MIT
// Which kernel transposes which matrix: arithmetic on bytes and waves, corrected by what was
// measured. Host code without CUDA.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "library/choose.hpp"

namespace cookbook::transpose {

/// Longest short extent of narrow.cuh's kernels.
constexpr std::int64_t kNarrow = 16;

/// What the arithmetic knows of these kernels.
struct Costs : library::Hopper {
  int sms = 132;
  double empty_us = 3.3;  ///< an empty kernel
  double wave_us = 0.6;   ///< a load, a barrier and a store, for a wave of blocks
  double slot_clocks =
      0.21;  ///< of an SM, per element of a tile, even if the matrix has none there
  double vector_slot_clocks = 0.09;     ///< the same with 16-byte accesses
  double exposed = 0.2;                 ///< of the shorter of memory and instructions, not hidden
  double l2_bytes = 50e6;               ///< matrices up to here: L2 merges partly written sectors
  double shared_in_l2 = 2, shared = 3;  ///< sectors moved for each that two tiles write in part
};

/// A kernel as a choice sees it: a block's tile of `in` (of the first four: a warp's), and the
/// blocks of an SM.
struct Candidate {
  const char* name;
  std::int64_t tile_rows, tile_cols;
  int blocks_per_sm = 0;
  bool vectors = false;  ///< 16-byte accesses
  int line = 1;          ///< elements to whose multiples its stores are shifted
  std::int64_t max_rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_cols = std::numeric_limits<std::int64_t>::max();
};

// clang-format off
inline constexpr Candidate kCandidates[] = {
    {.name = "few_rows_1", .tile_rows = 1, .tile_cols = 32, .max_rows = kNarrow},
    {.name = "few_rows_4", .tile_rows = 1, .tile_cols = 128, .max_rows = kNarrow},
    {.name = "few_cols_1", .tile_rows = 32, .tile_cols = 1, .max_cols = kNarrow},
    {.name = "few_cols_4", .tile_rows = 128, .tile_cols = 1, .max_cols = kNarrow},
    {.name = "small_tiles", .tile_rows = 32, .tile_cols = 32, .blocks_per_sm = 8},
    {.name = "in_flight", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 4},
    {.name = "vectorised", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 8, .vectors = true},
    {.name = "on_lines", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 3},
    {.name = "aligned", .tile_rows = 128, .tile_cols = 64, .blocks_per_sm = 3, .line = 32},
};
// clang-format on

/// Whether its tile holds the short extent.
constexpr bool supports(const Candidate& c, std::int64_t rows, std::int64_t cols) {
  return rows <= c.max_rows && cols <= c.max_cols;
}

/// What of the addresses matters: where rows of `out` start (on lines of 128 bytes, on sectors of
/// 32, or neither), and whether all accesses may have 16 bytes.
inline std::string kind_of(bool on_lines, bool on_sectors, bool vectors) {
  return std::string(on_lines     ? "lines"
                     : on_sectors ? "sectors"
                                  : "words") +
         (vectors ? "+vectors" : "");
}

/// The kind of a matrix that begins on a line, as its transpose does. Pitches in elements.
inline std::string kind_of(std::int64_t rows, std::int64_t cols, std::int64_t in_pitch,
                           std::int64_t out_pitch) {
  return kind_of(out_pitch % 32 == 0, out_pitch % 8 == 0,
                 (rows | cols | in_pitch | out_pitch) % 4 == 0);
}

/// Microseconds: every byte once through device memory, or the waves of blocks, whichever takes
/// longer, and a part of the other. A sector at the end of a tile's row that starts off sectors has
/// two writers.
inline double predicted_us(const Candidate& c, const library::Shape& shape) {
  const Costs cost;
  const std::int64_t rows = shape.extents[0], cols = shape.extents[1];
  if (!supports(c, rows, cols) || (c.vectors && !shape.kind.ends_with("+vectors")))
    return std::numeric_limits<double>::infinity();
  std::int64_t tile_rows = c.tile_rows, tile_cols = c.tile_cols, per_sm = c.blocks_per_sm;
  const bool few_rows = c.max_rows == kNarrow, narrow = few_rows || c.max_cols == kNarrow;
  if (narrow) {  // a row of whole warps per long row, 256 threads or more
    const std::int64_t lines = std::max<std::int64_t>(few_rows ? rows : cols, 1);
    const std::int64_t threads = std::max<std::int64_t>(256 / (lines * 32), 1) * 32;
    per_sm = 2048 / (threads * lines);
    tile_rows = few_rows ? lines : threads * c.tile_rows / 32;
    tile_cols = few_rows ? threads * c.tile_cols / 32 : lines;
  }
  const auto tiles = [](std::int64_t extent, std::int64_t size) {
    return (extent + size - 1) / size;
  };
  const std::int64_t blocks = tiles(rows + c.line - 1, tile_rows) * tiles(cols, tile_cols);
  const std::int64_t at_once = cost.sms * per_sm, last = blocks % at_once;
  const double slot = c.vectors ? cost.vector_slot_clocks : cost.slot_clocks;
  const auto wave = [&](std::int64_t blocks_of_sm) {
    return cost.wave_us +
           static_cast<double>(tile_rows * tile_cols * blocks_of_sm) * slot / cost.clock_mhz;
  };
  const double waves = static_cast<double>(blocks / at_once) * wave(per_sm) +
                       (last > 0 ? wave(tiles(last, cost.sms)) : 0);
  const double bytes = 4.0 * static_cast<double>(rows) * static_cast<double>(cols);
  const bool has_shared = shape.kind.starts_with("words") && c.line == 1 && !narrow;
  const double shared = has_shared ? 8.0 / static_cast<double>(tile_rows) : 0;  // of its sectors
  const double moved =
      bytes * (2 + shared * (bytes > cost.l2_bytes ? cost.shared : cost.shared_in_l2));
  const double memory = moved / cost.hbm_bytes_per_us;
  return cost.empty_us + std::max(memory, waves) + cost.exposed * std::min(memory, waves);
}

/// Measured on an H200, dense matrices.
inline const library::Recording& h200_recording() {
  static const library::Recording recording(
#include "library/transpose/recorded/nvidia_h200.inc"
      , 2);
  return recording;
}

/// The candidate for a matrix. `recording`: of this GPU, or null.
inline const Candidate& choose(const library::Shape& shape, const library::Recording* recording) {
  return *library::ranked(kCandidates, shape, predicted_us, recording, 0.4).front().candidate;
}

}  // namespace cookbook::transpose
