// SPDX-License-Identifier: MIT
/// @file
/// The kernels among which a GEMM chooses, and the arithmetic that ranks them: see
/// library/choose.hpp. Host code: a test can ask for any shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "library/choose.hpp"
#include "library/gemm/few_vectors.cuh"

namespace cookbook::gemm::any_shape {

enum class Kernel {
  gemv,       ///< gemv.cuh: one row or column of C
  short_k,    ///< short_k.cuh: 2 to 16 rows or columns, K up to 128
  skinny,     ///< skinny.cuh: 2 to 32 rows or columns
  cluster_k,  ///< skinny.cuh: the blocks of a cluster divide K
  split_k,    ///< split_k.cuh: blocks divide K, sums go through L2
  whole,      ///< whole_tiles.cuh, ping-pong: stream_k_tiles.cuh: each tile by one block or cluster
  any_pitch,  ///< stream_k_tiles.cuh: the same, for rows of C that TMA cannot store
  stream_k,   ///< stream_k_tiles.cuh: the tiles of the last wave are cut along K
};

struct Candidate {
  const char* name;
  Kernel kernel;
  int m = 0, n = 0;         ///< a block's tile of C; of skinny to split_k: outputs x vectors
  int cluster = 1;          ///< blocks, one above the other
  bool transposed = false;  ///< the tile is m columns by n rows of C
  bool persistent = false;  ///< as many blocks as SMs: the next tile loads during an epilogue
  bool ping_pong = false;   ///< and multiplies during it
};

// clang-format off
inline constexpr Candidate kCandidates[] = {
    {"gemv", Kernel::gemv},
    {"short_k", Kernel::short_k},
    {"skinny", Kernel::skinny, 64},
    {"cluster_k_64x64", Kernel::cluster_k, 64, 64},
    {"split_k_64x32", Kernel::split_k, 64, 32},
    {"split_k_128x96", Kernel::split_k, 128, 96},
    {"split_k_128x160", Kernel::split_k, 128, 160},
    {"split_k_128x256", Kernel::split_k, 128, 256},
    {"whole_64x64", Kernel::whole, 64, 64},
    {"whole_64x128", Kernel::whole, 64, 128},
    {"transposed_64x96", Kernel::whole, 64, 96, 1, true},
    {"transposed_64x160", Kernel::whole, 64, 160, 1, true},
    {"transposed_64x192", Kernel::whole, 64, 192, 1, true},
    {"transposed_128x96", Kernel::whole, 128, 96, 1, true},
    {"transposed_128x112", Kernel::whole, 128, 112, 1, true},
    {"transposed_128x128", Kernel::whole, 128, 128, 1, true},
    {"transposed_128x144", Kernel::whole, 128, 144, 1, true},
    {"transposed_128x176", Kernel::whole, 128, 176, 1, true},
    {"transposed_128x208", Kernel::whole, 128, 208, 1, true},
    {"persistent_128x256", Kernel::whole, 128, 256, 1, false, true},
    {"ping_pong_64x256", Kernel::whole, 64, 256, 1, false, true, true},
    {"ping_pong_128x192", Kernel::whole, 128, 192, 2, false, true, true},
    {"any_pitch_128x256", Kernel::any_pitch, 128, 256, 2, false, true},
    {"any_pitch_128x128", Kernel::any_pitch, 128, 128, 1, false, true},
    {"any_pitch_128x64", Kernel::any_pitch, 128, 64, 1, false, true},
    {"stream_k_128x256", Kernel::stream_k, 128, 256, 2, false, true},
    {"stream_k_128x128", Kernel::stream_k, 128, 128, 1, false, true},
    {"stream_k_128x64", Kernel::stream_k, 128, 64, 1, false, true},
};
// clang-format on

/// The candidate called `name`. Throws std::out_of_range.
inline const Candidate& candidate(std::string_view name) {
  for (const Candidate& c : kCandidates) {
    if (c.name == name) return c;
  }
  throw std::out_of_range("no candidate is called " + std::string(name));
}

/// What the arithmetic knows of this folder's kernels, in clocks of an SM.
struct Costs : library::Hopper {
  double load_clocks = 140;       ///< per k-block, more while all SMs load: barriers, L2's latency
  double load_clocks_per_kb = 4;  ///< the same per KB of operands; twice where rows are off lines
  double tile_clocks = 1800;      ///< per tile: the first loads, the last stores
  double store_clocks = 0.05;     ///< per element of C in an epilogue that nothing hides
  double exchange_us = 2.3;       ///< blocks that divide K wait for each other
  double exposed = 0.5;           ///< of the shorter of memory and compute, not hidden by the other
};

/// Whether TMA can store C.
inline bool tma_stores_c(const Problem& p, const Buffers& at) {
  return rows_are_16_byte_aligned(at.c, p.ldc) && tma_stores_rows_of(p.n);
}

/// Whether a box of 128 bytes of such a row is in two lines of L2. A padded copy has rows on lines.
inline bool rows_are_off_lines(const bf16* base, std::int64_t pitch) {
  return pitch % 64 != 0 && rows_are_16_byte_aligned(base, pitch);
}

/// A time, and the number of blocks among which it divides the k-blocks of a tile.
struct Predicted {
  double us = std::numeric_limits<double>::infinity();
  int splits = 1;
};

/// The time of a GEMM by arithmetic; infinite where the candidate does not support it. at:
/// addresses, of which only the alignment counts.
inline Predicted predict(const Candidate& c, const Problem& p, const Buffers& at, int sms) {
  const Costs cost;
  const auto whole = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const Gemv g = gemv_of(p, at);
  const std::int64_t k_blocks = whole(p.k, 64);
  const double memory_us = p.bytes() / cost.hbm_bytes_per_us;
  if (c.kernel == Kernel::gemv || g.batch == 1) {
    if ((c.kernel == Kernel::gemv) != (g.batch == 1)) return {};
    return {cost.launch_us + memory_us};
  }
  if (c.kernel == Kernel::short_k) {
    if (g.batch > 16 || g.depth > 128 || !loads_vectors_of_w(g)) return {};
    return {cost.launch_us + memory_us};
  }
  if (c.kernel == Kernel::skinny && g.batch > kFewVectors) return {};
  if (c.kernel == Kernel::whole && !tma_stores_c(p, at)) return {};
  if (c.kernel == Kernel::any_pitch && tma_stores_c(p, at)) return {};

  // Clocks of a block per k-block. working: the part of all SMs that load.
  const int width = c.kernel == Kernel::skinny ? skinny_width(g) : c.n;
  const double bytes = 64 * 2 * (c.m + real(width) / c.cluster);
  const double off_lines = rows_are_off_lines(at.a, p.lda) + rows_are_off_lines(at.b, p.ldb);
  // [quote step]
  const auto step = [&](double working) {
    return 64.0 * c.m * width / cost.fma_per_clock +
           working * (cost.load_clocks + cost.load_clocks_per_kb * bytes / 1024 * (1 + off_lines));
  };
  // [end quote]
  // Blocks that divide K load different bytes at the same time, so L2 sends each to one SM only.
  const auto step_of_split = [&](double working) {
    return std::max(step(working), working * bytes / cost.l2_bytes_per_clock);
  };
  const auto us_of = [&](double clocks) {
    const double us = clocks / cost.clock_mhz;
    return cost.launch_us + std::max(us, memory_us) + cost.exposed * std::min(us, memory_us);
  };
  const double elements = real(std::int64_t{c.m} * width), store = cost.store_clocks * elements;
  // Partial sums, written to L2 and read from there. working: as above.
  const auto exchanged_us = [&](double working) {
    return 2 * 8 * elements * working / cost.l2_bytes_per_clock / cost.clock_mhz;
  };

  if (c.kernel == Kernel::cluster_k || c.kernel == Kernel::split_k || c.kernel == Kernel::skinny) {
    const bool in_cluster = c.kernel != Kernel::split_k;
    const int fewest = c.kernel == Kernel::skinny ? 1 : 2;
    const std::int64_t tiles = whole(g.outputs, c.m) * whole(g.batch, width);
    const std::int64_t most = std::min({k_blocks, sms / tiles, std::int64_t{in_cluster ? 8 : sms}});
    Predicted best;
    for (int splits = fewest; splits <= std::max<std::int64_t>(most, fewest == 1); ++splits) {
      const double blocks = real(tiles * splits), working = std::min(1.0, blocks / sms);
      const double waves = std::max(1.0, blocks / (2.0 * sms));  // two blocks of skinny per SM
      double us = us_of(waves * real(whole(k_blocks, splits)) * step_of_split(working) +
                        cost.tile_clocks + store);
      if (splits > 1) us += cost.exchange_us;
      if (!in_cluster) us += exchanged_us(working);
      if (us < best.us) best = {us, splits};
    }
    return best;
  }
  const std::int64_t m = c.transposed ? p.n : p.m, n = c.transposed ? p.m : p.n;
  const std::int64_t tiles = whole(m, c.m * c.cluster) * whole(n, c.n);
  const std::int64_t clusters = std::max(1, sms / c.cluster);
  if (c.kernel == Kernel::stream_k) {
    const std::int64_t cut = tiles % clusters;  // tiles of the last wave
    if (cut == 0 || (tiles > clusters && tma_stores_c(p, at))) return {};
    // One cluster adds the sums of all others of its tile, one after the other.
    const double adds = std::max(1.0, real(clusters) / real(cut));
    return {us_of(real(tiles) * real(k_blocks) / real(clusters) * step_of_split(1) +
                  cost.tile_clocks + store) +
            cost.exchange_us + adds * exchanged_us(1)};
  }
  const double waves = real(whole(tiles, clusters));
  const double working = real(tiles) / (waves * real(clusters));
  const double epilogues = c.ping_pong    ? cost.tile_clocks + store
                           : c.persistent ? cost.tile_clocks + waves * store
                                          : waves * (cost.tile_clocks + store);
  return {us_of(waves * real(k_blocks) * step(working) + epilogues)};
}

}  // namespace cookbook::gemm::any_shape
