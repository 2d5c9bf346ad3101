// SPDX-License-Identifier: MIT
// The kernels that library/rows and library/transpose choose, over grids of shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "library/rows/choose.hpp"
#include "library/transpose/choose.hpp"

namespace {

using namespace cookbook;
using namespace cookbook::softmax;

const std::vector<std::int64_t> kExtents = {
    1,      2,      3,      5,      8,      16,      17,      31,
    32,     33,     63,     64,     65,     127,     255,     256,
    500,    512,    513,    1000,   1024,   2047,    2048,    4096,
    4099,   8192,   8200,   16384,  16385,  32768,   32769,   65537,
    100003, 262144, 262145, 524288, 524289, 1000003, 3000000, (std::int64_t{1} << 32) + 3};

template <class Check>
void for_all_rows(const Check& check) {
  for (const std::int64_t cols : kExtents) {
    if (cols >> 31 != 0) continue;
    for (const int bytes : {2, 4}) {
      for (int flags = 0; flags < 32; ++flags) {
        RowCase c;
        c.element_bytes = bytes;
        c.vectors = (flags & 1) != 0;
        c.peeled = (flags & 2) != 0;
        c.packed = (flags & 4) != 0;
        c.exponentials = (flags & 8) != 0;
        c.has_clusters = (flags & 16) != 0;
        if (c.vectors && (c.peeled || cols * bytes % 16 != 0)) continue;
        check(c, cols);
      }
    }
  }
}

// Longest row of a kernel in elements, from its configuration. A bulk copy needs a boundary.
bool can_hold(const RowCandidate& k, const RowCase& c, std::int64_t cols, int blocks) {
  const std::int64_t whole = cols - cols % (16 / c.element_bytes), bytes = whole * c.element_bytes;
  const std::int64_t held = c.vectors || c.peeled ? whole : cols;
  if (blocks > 1 && (blocks > 16 || !c.has_clusters)) return false;
  switch (k.kernel) {
    case RowKernel::short_rows: return c.vectors && bytes <= 128;
    case RowKernel::packed_rows: return c.peeled && c.packed && cols <= 64;
    case RowKernel::single: return c.exponentials && cols <= 4 * k.threads;
    case RowKernel::on_chip: return held <= 1024 * 32;
    case RowKernel::any_length: return true;
    case RowKernel::in_shared: return c.has_clusters && held == whole && bytes <= 48 * 1024;
    case RowKernel::slices:
      return held == whole && blocks > 1 && bytes <= blocks * k.elements * std::int64_t{1024};
    case RowKernel::signals:
      return blocks > 1 && held <= std::int64_t{blocks} * k.threads * k.elements &&
             (k.threads == 512 ? (blocks & (blocks - 1)) == 0 : c.vectors);
    case RowKernel::in_order:
      return c.has_clusters && c.vectors && !c.exponentials && cols <= 512 * 32;
    case RowKernel::persistent:
      return c.vectors && blocks > 1 && cols <= std::int64_t{blocks} * k.threads * 32;
  }
  return false;
}

TEST(RowChoice, EveryRowHasAKernelThatHoldsIt) {
  for (const auto* recording :
       {static_cast<const library::Recording*>(nullptr), &h200_row_recording()}) {
    for_all_rows([&](const RowCase& c, std::int64_t cols) {
      for (const std::int64_t rows : kExtents) {
        const RowCandidate& chosen = choose_rows(c, rows, cols, recording);
        EXPECT_TRUE(can_hold(chosen, c, cols, blocks_per_row(chosen, c, cols)))
            << chosen.name << " " << rows << "x" << cols << ", " << c.element_bytes << " bytes";
      }
    });
  }
}

TEST(RowChoice, WhatIsSupportedIsHeld) {
  std::set<std::string> supported;
  for_all_rows([&](const RowCase& c, std::int64_t cols) {
    for (const RowCandidate& candidate : kRowCandidates) {
      const int blocks = blocks_per_row(candidate, c, cols);
      if (blocks == 0) continue;
      supported.insert(candidate.name);
      EXPECT_TRUE(can_hold(candidate, c, cols, blocks)) << candidate.name << " " << cols;
    }
  });
  EXPECT_EQ(supported.size(), std::size(kRowCandidates));
}

// A cluster of one block is launched without a cluster, where a store to another block is illegal.
TEST(RowChoice, APersistentClusterHasTwoBlocksOrMore) {
  for_all_rows([&](const RowCase& c, std::int64_t cols) {
    for (const RowCandidate& candidate : kRowCandidates) {
      if (candidate.kernel != RowKernel::persistent) continue;
      EXPECT_NE(blocks_per_row(candidate, c, cols), 1) << candidate.name << " " << cols;
    }
  });
}

TEST(RowChoice, PredictionsByHand) {
  RowCase c;  // fp32 softmax, 132 SMs
  const RowCandidate& signals = kRowCandidates[16];
  ASSERT_STREQ(signals.name, "signals");
  // 1,024 rows of 128 KB in clusters of two, two blocks per SM: 132 rows in flight, so that 128 MiB
  // are read and written at the bandwidth of device memory, which takes longer than 8 waves.
  const double us = 2.0 * 1024 * 131072 / 4.2e6;
  EXPECT_DOUBLE_EQ(predicted_us(signals, c, 1024, 32768), 5.2 - 1.3 + us + 0.5);
  // Of one row, 131,072 bytes are in flight on 132 SMs, of 32 KB each that the bandwidth needs.
  EXPECT_DOUBLE_EQ(predicted_us(signals, c, 1, 32768),
                   5.2 - 1.3 + 2 * 131072 / (4.2e6 * 131072 / 132 / 32768) + 0.5);
}

using transpose::kCandidates;

TEST(TransposeChoice, TheShortExtentFitsItsTile) {
  for (const auto* recording :
       {static_cast<const library::Recording*>(nullptr), &transpose::h200_recording()}) {
    for (const std::int64_t rows : kExtents) {
      for (const std::int64_t cols : kExtents) {
        for (const int flags : {0, 1, 2, 3, 4, 5}) {
          const bool vectors = flags % 2 != 0;
          const auto& chosen = transpose::choose(
              {{rows, cols}, transpose::kind_of(flags >= 4, flags >= 2, vectors)}, recording);
          // A block of the narrow kernels has a warp or more per long row, 512 threads at most.
          EXPECT_LE(chosen.max_rows == 16 ? rows : 1, 16) << chosen.name;
          EXPECT_LE(chosen.max_cols == 16 ? cols : 1, 16) << chosen.name;
          EXPECT_TRUE(vectors || !chosen.vectors) << chosen.name;
        }
      }
    }
  }
}

TEST(TransposeChoice, PredictionsByHand) {
  const auto& aligned = kCandidates[8];
  ASSERT_STREQ(aligned.name, "aligned");
  // 64 x 129 windows of 128 x 64 elements, nearly full, and three of them per SM in flight.
  EXPECT_DOUBLE_EQ(transpose::predicted_us(aligned, {{8191, 8193}, "words"}),
                   5.2 + 2 * 4.0 * 8191 * 8193 / 4.2e6);
  EXPECT_TRUE(std::isinf(transpose::predicted_us(kCandidates[0], {{17, 5}, "words"})));
  EXPECT_TRUE(std::isinf(transpose::predicted_us(kCandidates[6], {{64, 64}, "lines"})));
}

// What the choice costs where all candidates were timed: the geometric mean of its time over the
// fastest candidate's, and the worst.
template <class Choose>
void expect_small_loss(const library::Recording& recording, std::size_t least,
                       const Choose& choose) {
  double sum = 0;
  std::size_t shapes = 0;
  for (const auto& [bucket, entries] : recording.buckets()) {
    for (const auto& entry : entries) {
      double best = 1e9;
      for (const auto& [name, us] : entry.us) best = std::min(best, us);
      const auto chosen = entry.us.find(choose(entry.shape));
      ASSERT_NE(chosen, entry.us.end()) << bucket << ": the chosen kernel was not timed";
      sum += std::log(chosen->second / best);
      EXPECT_LE(chosen->second, 1.4 * best) << bucket << " " << chosen->first;
      ++shapes;
    }
  }
  EXPECT_GE(shapes, least);
  EXPECT_LE(std::exp(sum / static_cast<double>(shapes)), 1.02);
}

TEST(TransposeChoice, CostsLittleWhereAllCandidatesWereTimed) {
  const auto& recording = transpose::h200_recording();
  expect_small_loss(recording, 500, [&](const library::Shape& shape) {
    return std::string(transpose::choose(shape, &recording).name);
  });
}

TEST(RowChoice, CostsLittleWhereAllCandidatesWereTimed) {
  const auto& recording = h200_row_recording();
  expect_small_loss(recording, 200, [&](const library::Shape& shape) {
    RowCase c;
    c.element_bytes = shape.kind.find("bf16") != std::string::npos ? 2 : 4;
    c.exponentials = shape.kind.starts_with("softmax");
    c.vectors = shape.kind.find('+') == std::string::npos;
    c.peeled = c.packed = !c.vectors;
    return std::string(choose_rows(c, shape.extents[0], shape.extents[1], &recording).name);
  });
}

}  // namespace
