// SPDX-License-Identifier: MIT
// The problems of the worked capstones: sizes that they refuse, tensors, bytes, what their own
// generators draw, and references and bounds worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "capstones/convolution/problem.hpp"
#include "capstones/gemv/problem.hpp"
#include "capstones/histogram/problem.hpp"
#include "capstones/scan/problem.hpp"
#include "capstones/spmv/problem.hpp"
#include "common/harness/run/options.hpp"
#include "tests/references.hpp"

namespace cookbook {
namespace {

constexpr double kLeast = 0x1p-150;  // half the smallest fp32: what a term that underflows loses

// The last sizes within each limit, and the first ones beyond it.
template <class P>
void expect_sizes(const std::vector<Size>& taken, const std::vector<Size>& refused) {
  for (const Size& size : taken) EXPECT_NO_THROW(P::make(size, {})) << size_text(size);
  for (const Size& size : refused) EXPECT_THROW(P::make(size, {}), BadSize) << size_text(size);
}

// Rows, columns and pitch of each tensor.
template <class P>
void expect_extents(const P& problem, const std::vector<Size>& expected) {
  std::vector<Size> found;
  for (const TensorSpec& spec : problem.tensors()) {
    found.push_back({spec.rows, spec.cols, spec.pitch});
  }
  EXPECT_EQ(found, expected);
}

Variant wider(const char* tensor, std::int64_t by) {
  Variant variant;
  variant.tensors[tensor].extra_pitch = by;
  return variant;
}

TEST(CapstoneSizes, AreTakenUpToTheirLimits) {
  constexpr std::int64_t kRows = (std::int64_t{1} << 31) - 64;
  expect_sizes<convolution::Problem>(
      {{0, 0}, {kRows, 1}, {1, kRows}, {1 << 18, 1 << 18}},
      {Size{}, Size{1}, Size{1, 1, 1}, Size{-1, 1}, Size{1, -1}, Size{kRows + 1, 1},
       Size{1, kRows + 1}, Size{(1 << 18) + 1, 1 << 18}});
  expect_sizes<gemv::Problem>({{0, 0}, {1, 0}, {0, 1}}, {{}, {1}, {1, 1, 1}, {-1, 1}, {1, -1}});
  constexpr std::int64_t kKeys = std::int64_t{1} << 32;
  expect_sizes<histogram::Problem>(
      {{0, 0, 0}, {kKeys - 1, 256, 100}, {1, 0, 100}, {1, 256, 0}},
      {Size{}, Size{1, 1}, Size{1, 1, 1, 1}, Size{-1, 1, 1}, Size{kKeys, 1, 1}, Size{1, -1, 1},
       Size{1, 257, 1}, Size{1, 1, -1}, Size{1, 1, 101}});
  constexpr std::int64_t kScanned = std::int64_t{1} << 40;
  expect_sizes<scan::Problem>({{0}, {1}, {kScanned - 1}}, {{}, {1, 1}, {-1}, {kScanned}});
  constexpr std::int64_t kExtent = 1 << 28;
  expect_sizes<spmv::Problem>(
      {{0, 0, 0}, {1, kExtent - 1, 1}, {1, 1, kExtent - 1}},
      {Size{}, Size{1, 1}, Size{1, 1, 1, 1}, Size{-1, 1, 1}, Size{1, -1, 1}, Size{1, 1, -1},
       Size{kExtent, 1, 1}, Size{1, kExtent, 1}, Size{1, 1, kExtent},
       Size{1 << 12, kExtent - 1, kExtent - 1}});  // too many nonzeros
}

// With so large a mean every row that is not empty has all columns, so the sum can be met exactly.
TEST(CapstoneSizes, SpmvTakesFewerThan2To30RowsAndNonzerosTogether) {
  constexpr std::int64_t kMean = (1 << 28) - 1, kSum = 1 << 30;
  std::int64_t filled = 0, tried = 0;
  for (std::int64_t rows = 1; rows < 20000 && tried < 3; ++rows) {
    filled += spmv::row_length(rows - 1, 1, kMean);
    if (rows < 100 || (kSum - rows) % filled != 0) continue;
    const std::int64_t cols = (kSum - rows) / filled;
    EXPECT_THROW(spmv::Problem::make({rows, cols, kMean}, {}), BadSize);
    EXPECT_NO_THROW(spmv::Problem::make({rows, cols - 1, kMean}, {}));
    ++tried;
  }
  EXPECT_GE(tried, 1);
}

TEST(Convolution, ByHand) {
  auto variant = wider("in", 3);
  variant.tensors["out"].extra_pitch = 1;
  const auto problem = convolution::Problem::make({4, 6}, variant);
  expect_extents(problem, {{4, 6, 9}, {5, 5, 5}, {4, 6, 7}});
  EXPECT_EQ(problem.bytes(), 4.0 * (2 * 24 + 25));
  HostTensors at = zeros(problem);
  // Row 0 of the result takes filter rows 2 to 4, its column 0 filter columns 2 to 4.
  at["filter"].set(2, 2, 1);
  at["filter"].set(4, 3, -10);
  at["filter"].set(0, 0, 100);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 6; ++c) at["in"].set(r, c, 1 + r + 10 * c);
  }
  const Row first = reference(problem, at, "out", 0), last = reference(problem, at, "out", 3);
  EXPECT_EQ(first.value[0], 1 - 10 * 13);  // in[2][1] is 13
  EXPECT_EQ(first.value[5], 51);           // what is right of the image is zero
  EXPECT_EQ(last.value[2], 24 + 100 * 2);  // in[1][0] is 2; rows below the image are zero
  EXPECT_EQ(last.value[1], 14);
  EXPECT_DOUBLE_EQ(first.bound[0], 26 * (kU * 131 + kLeast));
  EXPECT_DOUBLE_EQ(last.bound[2], 26 * (kU * 224 + kLeast));
}

TEST(Gemv, ByHand) {
  const auto problem = gemv::Problem::make({2, 3}, wider("a", 5));
  expect_extents(problem, {{2, 3, 8}, {1, 3, 3}, {2, 1, 1}});
  EXPECT_EQ(problem.bytes(), 2 * 6 + 2 * 3 + 4 * 2);
  HostTensors at = zeros(problem);
  put(at, "a", {{1, 2, 3}, {-4, 5, 6}});
  put(at, "x", {{1, -1, 2}});
  const Row first = reference(problem, at, "y", 0), second = reference(problem, at, "y", 1);
  EXPECT_EQ(first.value[0], 5);
  EXPECT_EQ(second.value[0], 3);
  // The root of four: three products and a sum of nothing.
  EXPECT_DOUBLE_EQ(first.bound[0], 4 * 2 * kU * 9 + kLeast);
  EXPECT_DOUBLE_EQ(second.bound[0], 4 * 2 * kU * 21 + kLeast);
}

TEST(Histogram, CountsByHandAndExactly) {
  const auto problem = histogram::Problem::make({6, 3, 0}, {});
  expect_extents(problem, {{1, 6, 6}, {1, 3, 3}});
  EXPECT_EQ(problem.bytes(), 4 * 6 + 4 * 3);
  HostTensors at = zeros(problem);
  put(at, "keys", {{0, 2, 2, 3, 1, 2}});
  const Row counts = reference(problem, at, "counts", 0);
  EXPECT_EQ(counts.value, (std::vector<double>{1, 1, 3}));  // the 3 is out of range
  EXPECT_EQ(counts.bound, (std::vector<double>{0, 0, 0}));
  auto begun = problem;
  begun.begin_reference(at);
  EXPECT_EQ(reference(begun, at, "counts", 0).value, counts.value);
}

// How often each key comes among `n`.
std::map<std::uint32_t, int> drawn_keys(std::uint64_t bins, std::uint64_t equal, int n) {
  std::vector<std::uint32_t> keys(static_cast<std::size_t>(n));
  histogram::Problem::draw_keys(keys.data(), n, bins, equal, 3);
  std::map<std::uint32_t, int> counts;
  for (const std::uint32_t key : keys) ++counts[key];
  return counts;
}

TEST(Histogram, KeysAreUniformEqualAndOutOfRangeAsOftenAsItSays) {
  constexpr int kDrawn = 1 << 18;
  auto uniform = drawn_keys(16, 0, kDrawn);
  int outside = 0;
  for (const auto& [key, count] : uniform) {
    EXPECT_LT(key, 16u + 4);
    if (key >= 16) outside += count;
    if (key < 16) {
      EXPECT_NEAR(count, kDrawn / 16, 800) << key;
    }
  }
  EXPECT_NEAR(outside, kDrawn / 1024, 80);
  EXPECT_EQ(uniform.size(), 20u);
  auto some = drawn_keys(16, 25, kDrawn);
  EXPECT_NEAR(some[8], kDrawn / 4 + kDrawn * 3 / 4 / 16, 1200);
  EXPECT_NEAR(some[7], kDrawn * 3 / 4 / 16, 800);
  EXPECT_EQ(drawn_keys(16, 100, 1000), (std::map<std::uint32_t, int>{{8, 1000}}));
  EXPECT_NE(drawn_keys(16, 0, 8), drawn_keys(256, 0, 8));
}

TEST(Scan, ByHand) {
  expect_extents(scan::Problem::make({0}, {}), {{0, 0, 0}, {0, 0, 0}});
  for (const std::int64_t n : {4095, 4096, 4097}) {
    expect_extents(scan::Problem::make({n}, {}), {{1, n, n}, {1, n, n}});
  }
  const auto problem = scan::Problem::make({3 * 4096}, {});
  expect_extents(problem, {{3, 4096, 4096}, {3, 4096, 4096}});
  EXPECT_EQ(problem.bytes(), 8.0 * 3 * 4096);
  HostTensors at = zeros(problem);
  at["in"].set(0, 0, 5);
  at["in"].set(0, 4095, -2);
  at["in"].set(1, 0, 1);
  at["in"].set(2, 1, 8);
  auto begun = problem;
  begun.begin_reference(at);
  for (const auto& each : {problem, begun}) {
    const Row first = reference(each, at, "out", 0), last = reference(each, at, "out", 2);
    EXPECT_EQ(first.value[0], 5);
    EXPECT_EQ(first.value[4094], 5);
    EXPECT_EQ(first.value[4095], 3);
    EXPECT_EQ(last.value[0], 4);
    EXPECT_EQ(last.value[1], 12);
    EXPECT_DOUBLE_EQ(first.bound[0], 4 * kU * 5 + kLeast);
    EXPECT_DOUBLE_EQ(first.bound[3], 4 * 2 * kU * 5 + kLeast);
    EXPECT_DOUBLE_EQ(last.bound[1], 4 * std::sqrt(8194.0) * kU * 16 + kLeast);
  }
}

TEST(Spmv, RowsAreShortLongAndEmptyAsOftenAsItSays) {
  constexpr int kRows = 1 << 16, kMean = 32;
  int empty = 0, shortest = 0, fives = 0, next = 0;
  std::int64_t all = 0, longest = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t length = spmv::row_length(row, 1 << 30, kMean);
    empty += length == 0;
    shortest += length == 4 || length == 5, fives += length == 5;  // 64 / 13, rounded at random
    next += length == 9 || length == 10;
    all += length, longest = std::max(longest, length);
  }
  EXPECT_NEAR(empty, kRows / 16, 300);
  EXPECT_NEAR(shortest, kRows * 15 / 16 / 2, 700);
  EXPECT_NEAR(fives, shortest * 12 / 13, 300);  // 64 is 12 more than 4 * 13
  EXPECT_NEAR(next, kRows * 15 / 16 / 4, 600);
  EXPECT_NEAR(static_cast<double>(all) / kRows, kMean, 4);
  EXPECT_LE(longest, (2 * kMean * 4096 + 12) / 13);
  EXPECT_GE(longest, 2 * kMean * 1024 / 13);
  EXPECT_LE(spmv::row_length(0, 3, 1 << 20), 3);
}

TEST(Spmv, ByHand) {
  const auto problem = spmv::Problem::make({64, 50, 4}, {});
  const std::int64_t nonzeros = problem.nonzeros;
  const Size each_nonzero = {1, nonzeros, nonzeros};
  expect_extents(problem, {each_nonzero, each_nonzero, {1, 65, 65}, {1, 50, 50}, {1, 64, 64}});
  EXPECT_EQ(problem.bytes(), static_cast<double>(8 * nonzeros + 4 * 65 + 4 * 50 + 4 * 64));
  EXPECT_EQ(problem.flops(), static_cast<double>(2 * nonzeros));
  HostTensors at = zeros(problem);
  const auto* offsets = at["offsets"].data<std::int32_t>();
  const auto* columns = at["columns"].data<std::int32_t>();
  int odd = 0, near = 0;
  EXPECT_EQ(offsets[0], 0);
  EXPECT_EQ(offsets[64], nonzeros);
  for (int row = 0; row < 64; ++row) {
    const std::int64_t length = offsets[row + 1] - offsets[row];
    EXPECT_EQ(length, spmv::row_length(row, 50, 4)) << row;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) {
      EXPECT_TRUE(columns[k] >= 0 && columns[k] < 50) << row;
      if (k > offsets[row]) {
        EXPECT_LT(columns[k - 1], columns[k]) << row;
      }
      if (2 * length <= 50) {  // every second one of twice as many, around the diagonal
        const std::int64_t first =
            std::clamp<std::int64_t>(row * 50 / 64 - length, 0, 50 - 2 * length);
        const std::int64_t beyond = columns[k] - first - 2 * (k - offsets[row]);
        EXPECT_TRUE(beyond == 0 || beyond == 1) << row;
        odd += beyond == 1, near += 1;
      }
    }
  }
  EXPECT_NEAR(odd, near / 2, near / 4);
  // Row `row` of y is the sum over its own nonzeros.
  for (std::int64_t k = 0; k < nonzeros; ++k) at["values"].set(0, k, k % 2 ? -3 : 2);
  for (int c = 0; c < 50; ++c) at["x"].set(0, c, c + 1);
  const Row y = reference(problem, at, "y", 0);
  for (int row = 0; row < 64; ++row) {
    double sum = 0, magnitude = 0;
    for (int k = offsets[row]; k < offsets[row + 1]; ++k) {
      sum += (k % 2 ? -3 : 2) * (columns[k] + 1);
      magnitude += (k % 2 ? 3 : 2) * (columns[k] + 1);
    }
    const double length = offsets[row + 1] - offsets[row];
    EXPECT_EQ(y.value[static_cast<std::size_t>(row)], sum) << row;
    EXPECT_DOUBLE_EQ(y.bound[static_cast<std::size_t>(row)],
                     4 * std::sqrt(length) * kU * magnitude + length * kLeast)
        << row;
  }
}

}  // namespace
}  // namespace cookbook
