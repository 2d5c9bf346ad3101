// SPDX-License-Identifier: MIT
// Which kernel transposes which matrix: arithmetic on bytes and waves, corrected by what was
// measured. Host code without CUDA.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "library/choose.hpp"

namespace cookbook::transpose {

/// Longest short extent of narrow.cuh's kernels.
constexpr std::int64_t kNarrow = 16;

/// Bytes in flight per SM that reach the bandwidth of device memory.
constexpr double kBytesInFlight = 32768;
/// From a load to its data and on to a store, in microseconds: what a wave of blocks takes at
/// least.
constexpr double kRoundTripUs = 1.3;

/// What a thread without an element costs, as a fraction of one with an element.
constexpr double kIdleCost = 0.0;

/// A kernel as a choice sees it: a block's tile of `in`, and the blocks of an SM.
struct Candidate {
  const char* name;
  std::int64_t tile_rows, tile_cols;
  int blocks_per_sm;
  bool vectors = false;  ///< 16-byte accesses
  int line = 1;          ///< elements to whose multiples its stores are shifted
  std::int64_t max_rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_cols = std::numeric_limits<std::int64_t>::max();
};

constexpr Candidate kCandidates[] = {
    {.name = "few_rows_1",
     .tile_rows = 16,
     .tile_cols = 32,
     .blocks_per_sm = 4,
     .max_rows = kNarrow},
    {.name = "few_rows_4",
     .tile_rows = 16,
     .tile_cols = 128,
     .blocks_per_sm = 4,
     .max_rows = kNarrow},
    {.name = "few_cols_1",
     .tile_rows = 32,
     .tile_cols = 16,
     .blocks_per_sm = 4,
     .max_cols = kNarrow},
    {.name = "few_cols_4",
     .tile_rows = 128,
     .tile_cols = 16,
     .blocks_per_sm = 4,
     .max_cols = kNarrow},
    {.name = "small_tiles", .tile_rows = 32, .tile_cols = 32, .blocks_per_sm = 8},
    {.name = "in_flight", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 4},
    {.name = "vectorised", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 8, .vectors = true},
    {.name = "on_lines", .tile_rows = 64, .tile_cols = 64, .blocks_per_sm = 3},
    {.name = "aligned", .tile_rows = 128, .tile_cols = 64, .blocks_per_sm = 3, .line = 32},
};

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

/// Microseconds: every byte once through device memory, or the waves of blocks, each of which waits
/// for memory twice. A sector that two blocks write moves twice, unless L2 holds it until then.
inline double predicted_us(const Candidate& c, const library::Shape& shape) {
  const library::Hopper gpu;
  const std::int64_t rows = shape.extents[0], cols = shape.extents[1];
  if (!supports(c, rows, cols) || (c.vectors && !shape.kind.ends_with("+vectors")))
    return std::numeric_limits<double>::infinity();
  // A narrow block has as many elements of the long extent as its threads reach.
  const bool few_rows = c.max_rows == kNarrow, few_cols = c.max_cols == kNarrow;
  const std::int64_t tile = c.tile_rows * c.tile_cols;
  const std::int64_t tile_rows = few_rows ? rows : few_cols ? tile / cols : c.tile_rows;
  const std::int64_t tile_cols = few_cols ? cols : few_rows ? tile / rows : c.tile_cols;
  const auto tiles = [](std::int64_t extent, std::int64_t size) {
    return static_cast<double>((extent + size - 1) / size);
  };
  const double blocks = tiles(rows + c.line - 1, tile_rows) * tiles(cols, tile_cols);
  const double waves = std::ceil(blocks / (gpu.sms * c.blocks_per_sm));
  const double bytes = 4.0 * static_cast<double>(rows * cols);
  const bool shared_sectors = shape.kind.starts_with("words") && c.line == 1 && !few_rows;
  const double written =
      shared_sectors && bytes > 40e6 ? 1 + 16.0 / static_cast<double>(tile_rows) : 1;
  // Elements of its tile that a block has: the others are threads that do nothing.
  const double used = static_cast<double>(rows * cols) / (blocks * static_cast<double>(tile));
  const double in_flight = 4.0 * static_cast<double>(tile) * c.blocks_per_sm * used;  // per SM
  const double rate = gpu.hbm_bytes_per_us * std::min(1.0, in_flight / kBytesInFlight);
  const double idle = 1 + kIdleCost * (1 / used - 1);
  return gpu.launch_us + std::max(idle * bytes * (1 + written) / rate, (waves - 1) * kRoundTripUs);
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
  return *library::ranked(kCandidates, shape, predicted_us, recording).front().candidate;
}

}  // namespace cookbook::transpose
