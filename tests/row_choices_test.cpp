// SPDX-License-Identifier: MIT
// The kernels that library/rows and library/transpose choose, over grids of shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/run/process.hpp"
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
      if (recording && !c.has_clusters) return;  // it is of a GPU with clusters
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
  const auto named = [](std::string_view name) {
    return *std::find_if(std::begin(kRowCandidates), std::end(kRowCandidates),
                         [name](const RowCandidate& k) { return k.name == name; });
  };
  // 1,024 rows of 128 KB in clusters of two, two blocks per SM: more bytes in flight than the
  // bandwidth needs, and 128 MiB are read and written. Seven full waves of 132 rows and one of 100
  // take less, and a fifth of that is not hidden.
  const double memory = 2.0 * 1024 * 131072 / 4.2e6;
  const double waves = 8 * 1.3 + (7 * 132 + 100) / 132.0 * 2 * 512 * 32 * 0.09 / 1900;
  EXPECT_DOUBLE_EQ(predicted_us(named("signals"), c, 1024, 32768), 3.3 + memory + 0.2 * waves);
  // One such row: half of a block's 512 x 32 elements per SM, after a load, a barrier and a
  // cluster's.
  const double one = 2.0 * 131072 / (4.2e6 * 131072 / 132 / 20480);
  const double its_wave = 1.3 + 1024 * 32 * 0.09 / 1900 / 2;
  EXPECT_DOUBLE_EQ(predicted_us(named("signals"), c, 1, 32768),
                   3.3 + std::max(one, its_wave) + 0.2 * std::min(one, its_wave));
  // 256 threads with 4 x 4 of 16 elements each: a row in one block, 132 x 4 at once.
  const double four = 4 * 16384 * 2.25 / (4.2e6 * 4 * 16384 / 132 / 20480);
  const double their_wave = 0.9 + 0.6 + 256 * 16 * 0.09 / 1900;
  EXPECT_DOUBLE_EQ(predicted_us(named("any_length"), c, 4, 4096),
                   3.3 + std::max(four, their_wave) + 0.2 * std::min(four, their_wave));
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
  // 65 x 129 windows of 128 x 64 elements, three per SM: 21 waves, the last of 69 blocks.
  const double wave = 0.6 + 128 * 64 * 3 * 0.21 / 1900, memory = 2 * 4.0 * 8191 * 8193 / 4.2e6;
  const double last = 0.6 + 128 * 64 * 0.21 / 1900;
  EXPECT_EQ(65 * 129 % 396, 69);
  EXPECT_DOUBLE_EQ(transpose::predicted_us(aligned, {{8191, 8193}, "words"}),
                   3.3 + memory + 0.2 * (21 * wave + last));
  // Tiles of 32 x 32, each row of which ends in a sector that another tile writes as well.
  ASSERT_STREQ(kCandidates[4].name, "small_tiles");
  EXPECT_DOUBLE_EQ(transpose::predicted_us(kCandidates[4], {{31, 32}, "words"}),
                   3.3 + (0.6 + 1024 * 0.21 / 1900) + 0.2 * 4 * 31 * 32 * (2 + 2 * 0.25) / 4.2e6);
  EXPECT_TRUE(std::isinf(transpose::predicted_us(kCandidates[0], {{17, 5}, "words"})));
  EXPECT_TRUE(std::isinf(transpose::predicted_us(kCandidates[6], {{64, 64}, "lines"})));
}

// Ratios of times over shapes.
struct Ratios {
  double sum = 0, least = 1e9;  // of logarithms; the worst shape
  int shapes = 0;
  void add(double ratio) { sum += std::log(ratio), least = std::min(least, ratio), ++shapes; }
  double mean() const { return std::exp(sum / std::max(shapes, 1)); }  // the geometric mean
};

double fastest(const library::Recording::Entry& entry) {
  double least = 1e9;
  for (const auto& [name, us] : entry.us) least = std::min(least, us);
  return least;
}

// What the choice costs where all candidates were timed: its time over the fastest candidate's.
template <class Choose>
void expect_small_loss(const library::Recording& recording, int least, const Choose& choose) {
  Ratios loss;
  for (const auto& entry : recording.entries()) {
    const double best = fastest(entry);
    const auto chosen = entry.us.find(choose(entry.shape));
    ASSERT_NE(chosen, entry.us.end()) << entry.shape.kind << ": the chosen kernel was not timed";
    loss.add(chosen->second / best);
    EXPECT_LE(chosen->second, 1.4 * best) << entry.shape.kind << " " << chosen->first;
  }
  EXPECT_GE(loss.shapes, least);
  EXPECT_LE(loss.mean(), 1.02);
}

std::string transposed_by(const library::Shape& shape) {
  return transpose::choose(shape, &transpose::h200_recording()).name;
}

TEST(TransposeChoice, CostsLittleWhereAllCandidatesWereTimed) {
  expect_small_loss(transpose::h200_recording(), 1200, transposed_by);
}

std::string chosen_of(const library::Shape& shape,
                      const library::Recording& recording = h200_row_recording()) {
  const RowCase c = dense_case(shape.kind.substr(0, shape.kind.find('+')), shape.extents[1]);
  EXPECT_EQ(kind_of(c), shape.kind);
  return choose_rows(c, shape.extents[0], shape.extents[1], &recording).name;
}

TEST(RowChoice, CostsLittleWhereAllCandidatesWereTimed) {
  expect_small_loss(h200_row_recording(), 1900,
                    [](const library::Shape& s) { return chosen_of(s); });
}

// What notes.md says of neighbours: a recorded shape is chosen almost as well if its own times are
// left out. Every seventh is. (With the arithmetic counting as in GEMM: 1.012.)
TEST(RowChoice, CostsLittleWhereNeighboursWereTimed) {
  const auto& entries = h200_row_recording().entries();
  std::vector<std::string> lines;
  for (const auto& entry : entries) {
    std::ostringstream line;
    line << entry.shape.extents[0] << ' ' << entry.shape.extents[1] << ' ' << entry.shape.kind;
    for (const auto& [name, us] : entry.us) line << ' ' << name << ' ' << us;
    lines.push_back(line.str() + '\n');
  }
  Ratios loss;
  for (std::size_t i = 0; i < entries.size(); i += 7) {
    std::string others;
    for (std::size_t j = 0; j < lines.size(); ++j) others += j == i ? "" : lines[j];
    const library::Recording without(others, 2);
    loss.add(entries[i].us.at(chosen_of(entries[i].shape, without)) / fastest(entries[i]));
  }
  EXPECT_LE(loss.mean(), 1.008);
}

// The shapes by which the choice is judged, none of which is recorded: the time of the kernel
// before over that of the chosen one.
template <class Choose>
Ratios judge(const std::string& file, const std::string& kind, const library::Recording& recording,
             const Choose& choose) {
  std::ifstream in(source_path(file));
  std::stringstream text;
  text << in.rdbuf();
  const library::Recording shapes(text.str(), 2);
  Ratios judged;
  for (const auto& entry : shapes.entries()) {
    const std::string& of = entry.shape.kind;
    if (!kind.empty() && of.substr(0, of.find('+')) != kind) continue;
    for (const auto& recorded : recording.entries()) {
      EXPECT_FALSE(entry.shape.kind == recorded.shape.kind &&
                   entry.shape.extents == recorded.shape.extents);
    }
    const auto us = entry.us.find(choose(entry.shape));
    if (us == entry.us.end()) {
      ADD_FAILURE() << of << ": the chosen kernel was not timed";
      continue;
    }
    judged.add(entry.us.at("before") / us->second);
  }
  std::printf("%s %s: %d shapes, of the choice before %.4f, least %.3f\n", file.c_str(),
              kind.c_str(), judged.shapes, judged.mean(), judged.least);
  return judged;
}

TEST(TransposeChoice, IsAsGoodAsTheChoiceBefore) {
  const Ratios judged = judge("library/transpose/judged_nvidia_h200.txt", "",
                              transpose::h200_recording(), transposed_by);
  EXPECT_EQ(judged.shapes, 30);
  EXPECT_GE(judged.mean(), 1.0);
  EXPECT_GE(judged.least, 0.99);
}

TEST(RowChoice, IsAsGoodAsTheChoiceBefore) {
  struct Bar {
    const char* kind;
    int shapes;
    double mean, least;
  };
  for (const Bar& bar : {Bar{"softmax", 19, 1.0, 0.97}, Bar{"softmax_bf16", 22, 0.994, 0.89},
                         Bar{"rmsnorm", 13, 1.0, 0.99}, Bar{"rmsnorm_bf16", 12, 1.0, 0.99}}) {
    const Ratios judged =
        judge("library/rows/judged_nvidia_h200.txt", bar.kind, h200_row_recording(),
              [](const library::Shape& s) { return chosen_of(s); });
    EXPECT_EQ(judged.shapes, bar.shapes) << bar.kind;
    EXPECT_GE(judged.mean(), bar.mean) << bar.kind;
    EXPECT_GE(judged.least, bar.least) << bar.kind;
  }
}

}  // namespace
