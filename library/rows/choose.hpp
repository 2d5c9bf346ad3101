// SPDX-License-Identifier: MIT
// Which kernel computes which rows: arithmetic on bytes, waves and instructions, corrected by what
// was measured. Host code without CUDA.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "library/choose.hpp"

namespace cookbook::softmax {

/// The kernels: short_rows.cuh, packed_rows.cuh, and those of chapter 9.
enum class RowKernel {
  short_rows,   // several rows per thread
  packed_rows,  // contiguous rows off 16-byte boundaries
  single,       // level 5 with single accesses, four elements per lane
  on_chip,      // level 5
  any_length,   // level 4, RMSNorm's level 0: every row is read twice
  in_shared,    // level 8, a row in one block
  slices,       // level 8, a row in a cluster
  signals,      // level 7
  in_order,     // RMSNorm's level 1: persistent blocks
  persistent    // RMSNorm's level 2: persistent clusters
};

/// What the choice depends on besides the extents.
struct RowCase {
  int element_bytes = 4;
  bool vectors = true;  ///< all accesses may have 16 bytes
  bool peeled = false;  ///< all but those at a row's ends
  bool packed = false;  ///< row r + 1 begins where row r ends, in `in` and in `out`
  bool exponentials = true;
  bool has_clusters = true;  ///< compute capability 9.0, and 200 KB of shared memory per block
  int sms = 132;
};

/// A kernel as a choice sees it. Of `threads` threads of a block, each holds `elements` of a row.
struct RowCandidate {
  const char* name;
  RowKernel kernel;
  int threads = 256;
  int elements = 32;
  int blocks_per_sm = 4;
  /// Blocks per row: the fewest that hold it times this, and at least two; of `slices` their
  /// number.
  int blocks = 1;
};

inline constexpr RowCandidate kRowCandidates[] = {
    {"short_rows", RowKernel::short_rows, 128, 32, 8},
    {"packed_rows", RowKernel::packed_rows, 256, 16, 6},
    {"single_2", RowKernel::single, 2, 4, 1024},
    {"single_8", RowKernel::single, 8, 4, 256},
    {"single_16", RowKernel::single, 16, 4, 128},
    {"single_32", RowKernel::single, 32, 4, 64},
    {"on_chip", RowKernel::on_chip, 1024, 32, 1},
    {"any_length", RowKernel::any_length, 256, 8, 8},
    {"in_shared", RowKernel::in_shared, 256, 48, 4},
    {"in_shared_48k", RowKernel::slices, 256, 48, 4},
    {"in_shared_32k", RowKernel::slices, 256, 32, 6},
    {"in_shared_32k_x2", RowKernel::slices, 256, 32, 6, 2},
    {"in_shared_32k_x4", RowKernel::slices, 256, 32, 6, 4},
    {"in_shared_32k_x8", RowKernel::slices, 256, 32, 6, 8},
    {"in_shared_32k_x16", RowKernel::slices, 256, 32, 6, 16},
    {"in_shared_64k", RowKernel::slices, 256, 64, 3, 16},
    {"signals", RowKernel::signals, 512, 32, 2},
    {"slices_16_x1", RowKernel::signals, 256, 16, 4, 1},
    {"slices_16_x2", RowKernel::signals, 256, 16, 4, 2},
    {"slices_16_x4", RowKernel::signals, 256, 16, 4, 4},
    {"slices_32_x1", RowKernel::signals, 256, 32, 4, 1},
    {"slices_32_x2", RowKernel::signals, 256, 32, 4, 2},
    {"rows_in_order", RowKernel::in_order, 512, 32, 1},
    {"resident_256_2", RowKernel::persistent, 256, 32, 2},
    {"resident_256_3", RowKernel::persistent, 256, 32, 3},
    {"resident_256_4", RowKernel::persistent, 256, 32, 4},
    {"resident_512_1", RowKernel::persistent, 512, 32, 1},
    {"resident_512_2", RowKernel::persistent, 512, 32, 2},
};

/// Elements of a row, or of a slice of one, that a block holds. Chunks of level 8 are counted in
/// bytes: kernels of fp32 and bf16 have the same shared memory.
constexpr std::int64_t capacity(const RowCandidate& k, const RowCase& c) {
  const bool in_bytes = k.kernel == RowKernel::in_shared || k.kernel == RowKernel::slices;
  return std::int64_t{k.threads} * k.elements * (in_bytes ? 4 : c.element_bytes) / c.element_bytes;
}

/// Blocks that hold a row together; 0: this kernel does not support these rows.
constexpr int blocks_per_row(const RowCandidate& k, const RowCase& c, std::int64_t cols) {
  const std::int64_t held =
      c.vectors || c.peeled ? cols / (16 / c.element_bytes) * (16 / c.element_bytes) : cols;
  const std::int64_t bytes = cols * c.element_bytes, each = capacity(k, c);
  const std::int64_t least = (held + each - 1) / each;
  std::int64_t cluster = 1;
  while (cluster < least) cluster *= 2;
  switch (k.kernel) {
    case RowKernel::short_rows: return c.vectors && bytes <= 128;
    case RowKernel::packed_rows: return c.peeled && c.packed && cols <= 64;
    case RowKernel::single: return c.exponentials && cols <= each;
    case RowKernel::on_chip: return held <= each;
    case RowKernel::any_length: return 1;
    default: break;
  }
  if (!c.has_clusters || cols == 0) return 0;
  const int blocks = static_cast<int>(std::min<std::int64_t>(least, 1 << 20));
  switch (k.kernel) {
    case RowKernel::in_shared: return (c.vectors || c.peeled) && bytes >= 4096 && least == 1;
    case RowKernel::slices: {
      const int asked = k.blocks == 1 ? blocks : k.blocks;
      const bool enough = k.elements == 64 ? bytes > 16 * 32768
                                           : k.blocks == 1 || bytes >= asked * std::int64_t{8192};
      // More blocks than the fewest: else it would be in_shared_32k.
      const bool fits = k.elements == 32 && k.blocks > 1 ? asked > blocks : asked >= blocks;
      if (!fits || asked < 2 || asked > 16) return 0;
      return (c.vectors || c.peeled) && bytes >= 4096 && enough ? asked : 0;
    }
    case RowKernel::signals: {
      if (k.threads == 512) return cluster > 1 && cluster <= 16 ? static_cast<int>(cluster) : 0;
      const int asked = blocks > 1 ? blocks * k.blocks : k.blocks;
      return c.vectors && asked > 1 && asked <= 16 && bytes >= asked * std::int64_t{4096} ? asked
                                                                                          : 0;
    }
    case RowKernel::in_order: return c.vectors && !c.exponentials && least == 1;
    case RowKernel::persistent: {
      // Of softmax: two blocks of 512 threads per SM, and for bf16 three or four of 256.
      const bool compiled = c.exponentials
                                ? (k.threads == 512 ? k.blocks_per_sm == 2
                                                    : c.element_bytes == 2 && k.blocks_per_sm > 2)
                                : k.blocks_per_sm * k.threads == 512;
      const bool exact = c.exponentials && k.threads == 256;
      const std::int64_t size = exact ? least : cluster;
      return c.vectors && compiled && size > 1 && size <= 16 ? static_cast<int>(size) : 0;
    }
    default: return 0;
  }
}

/// What the arithmetic knows of these kernels.
struct Costs : library::Hopper {
  double empty_us = 3.3;           ///< an empty kernel
  double wave_us = 0.3;            ///< a load and a store, for a wave of rows
  double slot_clocks = 0.09;       ///< of an SM, per element that its threads have room for
  double barrier_us = 0.6;         ///< the warps of a row exchange their Partials
  double cluster_us = 0.4;         ///< the same of blocks, more
  double bulk_us = 1.4;            ///< a bulk copy into shared memory, and the row again from there
  double again = 0.25;             ///< of a row's bytes, if it is read again from L2
  double bytes_in_flight = 20480;  ///< per SM, which reach the bandwidth of device memory
  double exposed = 0.2;            ///< of the shorter of memory and waves, not hidden by the other
};

/// Threads for a row, and the rows that are on the GPU at once.
struct Occupancy {
  double threads, rows;
};
inline Occupancy occupancy(const RowCandidate& k, const RowCase& c, double cols, int blocks) {
  const auto power = [](double least, double from) {
    while (from < least) from *= 2;
    return from;
  };
  const double bytes = cols * c.element_bytes;
  double threads = 1.0 * blocks * k.threads;
  switch (k.kernel) {
    case RowKernel::short_rows: threads = power(bytes / 16, 1) * 16 / c.element_bytes / 32; break;
    case RowKernel::packed_rows: threads = power(cols / 16, 1); break;
    case RowKernel::on_chip: threads = power(cols / 32, 8); break;
    case RowKernel::in_shared: threads = power(bytes / 192, 32); break;
    default: break;
  }
  return {threads, c.sms * std::floor(k.threads * k.blocks_per_sm / threads * blocks) / blocks};
}

/// Microseconds: what device memory or the waves of rows take, whichever is longer, and a part of
/// the other. Of kernels for which that is the same, the first in the list is chosen.
inline double predicted_us(const RowCandidate& k, const RowCase& c, std::int64_t rows,
                           std::int64_t cols) {
  const Costs cost;
  const int blocks = blocks_per_row(k, c, cols);
  if (blocks == 0) return std::numeric_limits<double>::infinity();
  const double n = static_cast<double>(rows), width = static_cast<double>(cols);
  const auto [threads, at_once] = occupancy(k, c, width, blocks);
  const bool bulk = k.kernel == RowKernel::in_shared || k.kernel == RowKernel::slices;
  const bool persistent = k.kernel == RowKernel::in_order || k.kernel == RowKernel::persistent;
  const bool twice = k.kernel == RowKernel::any_length;
  // Loops over a row end with it; rows in registers fill the room for the longest.
  const double elements = twice || bulk ? std::ceil(width / threads) : k.elements;
  const double latency = cost.wave_us + (threads > 32 || bulk ? cost.barrier_us : 0) +
                         (blocks > 1 ? cost.cluster_us : 0) + (bulk ? cost.bulk_us : 0) +
                         (twice ? 2 * cost.wave_us * std::ceil(elements / 32) : 0);
  const auto compute = [&, slots = threads](double rows_of_sm) {
    return rows_of_sm * slots * elements * cost.slot_clocks / cost.clock_mhz;
  };
  const double last = std::fmod(n, at_once);
  double waves = latency + compute(n / c.sms);  // of persistent blocks, which never wait for a wave
  if (!persistent) {
    waves = std::floor(n / at_once) * (latency + compute(at_once / c.sms));
    if (last > 0) waves += latency + compute(std::max(last / c.sms, 1.0 / blocks));
  }
  const double row_bytes = width * c.element_bytes;
  const double in_flight = std::min(n, at_once) * row_bytes;
  const double again = !twice ? 0 : in_flight > 30e6 ? 1 : cost.again;  // beyond what L2 holds
  const double rate =
      cost.hbm_bytes_per_us * std::min(1.0, in_flight / c.sms / cost.bytes_in_flight);
  const double memory = n * row_bytes * (2 + again) / rate;
  return cost.empty_us + std::max(memory, waves) + cost.exposed * std::min(memory, waves);
}

/// Shapes of which measured times are comparable.
inline std::string kind_of(const RowCase& c) {
  return std::string(c.exponentials ? "softmax" : "rmsnorm") +
         (c.element_bytes == 2 ? "_bf16" : "") +
         (c.vectors  ? ""
          : c.peeled ? "+peeled"
                     : "+elements");
}

/// The case of a dense matrix. name: of a ladder, which is a kind's first word.
inline RowCase dense_case(std::string_view name, std::int64_t cols) {
  RowCase c;
  c.element_bytes = name.ends_with("_bf16") ? 2 : 4;
  c.exponentials = name.starts_with("softmax");
  c.packed = true;
  c.peeled = cols * c.element_bytes % 16 != 0;
  c.vectors = !c.peeled;
  return c;
}

/// Measured on an H200, dense matrices.
inline const library::Recording& h200_row_recording() {
  static const library::Recording recording(
#include "library/rows/recorded/nvidia_h200.inc"
      , 2);
  return recording;
}

/// The candidate for these rows. `recording`: of this GPU, or null.
inline const RowCandidate& choose_rows(const RowCase& c, std::int64_t rows, std::int64_t cols,
                                       const library::Recording* recording) {
  const library::Shape shape{{rows, cols}, kind_of(c)};
  const auto predict = [&c](const RowCandidate& candidate, const library::Shape& of) {
    return predicted_us(candidate, c, of.extents[0], of.extents[1]);
  };
  return *library::ranked(kRowCandidates, shape, predict, recording, 0.4).front().candidate;
}

}  // namespace cookbook::softmax
