// SPDX-License-Identifier: MIT
// Which sizes a problem takes, and which it refuses: the first beyond each limit, and the last
// within it. Nothing is allocated.
#include <gtest/gtest.h>

#include <limits>

#include "chapters/00_roofs/problem.hpp"
#include "chapters/01_coalescing/problem.hpp"
#include "chapters/02_tiling/problem.hpp"
#include "chapters/03_bank_conflicts/problem.hpp"
#include "common/problems/gemm.hpp"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/10_flash_attention/sidebar_masks.hpp"
#include "chapters/11_autotuning/attention_problem.hpp"
#include "chapters/11_autotuning/rope_problem.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook {
namespace {

template <class P>
void expect_sizes(const char* what, const std::vector<Size>& taken,
                  const std::vector<Size>& refused) {
  for (const Size& size : taken) {
    EXPECT_NO_THROW(P::make(size, {})) << what << " " << size_text(size);
  }
  for (const Size& size : refused) {
    EXPECT_THROW(P::make(size, {}), BadSize) << what << " " << size_text(size);
  }
}

constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1024;  // of an extent of a product

TEST(Sizes, OfChapters0To3) {
  expect_sizes<roofs::ReadProblem>("read", {{0, 0}, {1, 1}},
                                   {{}, {1}, {1, 1, 1}, {-1, 1}, {1, -1}});
  expect_sizes<coalescing::Problem>("copy", {{0}, {std::int64_t{1} << 40}}, {{}, {-1}, {1, 1}});
  expect_sizes<transpose::Problem>("transpose", {{0, 0}, {1, 0}, {0, 1}},
                                   {{}, {1}, {1, 1, 1}, {-1, 1}, {1, -1}});
}

TEST(Sizes, OfProducts) {
  const std::vector<Size> taken = {{0, 0, 0}, {kMost, 1, 1}, {1, kMost, 1}, {1, 1, kMost}};
  const std::vector<Size> refused = {{},
                                     {1, 1},
                                     {1, 1, 1, 1},
                                     {-1, 1, 1},
                                     {1, -1, 1},
                                     {1, 1, -1},
                                     {kMost + 1, 1, 1},
                                     {1, kMost + 1, 1},
                                     {1, 1, kMost + 1}};
  expect_sizes<sgemm::Problem>("sgemm", taken, refused);
  expect_sizes<gemm::ProblemT<bf16>>("gemm", taken, refused);
  expect_sizes<gemm::ProblemT<half>>("hgemm", taken, refused);
}

TEST(Sizes, OfRows) {
  constexpr std::int64_t kMostCols = std::numeric_limits<std::int32_t>::max();
  expect_sizes<softmax::Problem<float>>("softmax",
                                        {{0, 0}, {std::int64_t{1} << 40, 1}, {1, kMostCols}},
                                        {{}, {1}, {1, 1, 1}, {-1, 1}, {1, -1}, {1, kMostCols + 1}});
}

TEST(Sizes, OfAttention) {
  constexpr std::int64_t kMostOf = 1 << 24;
  expect_sizes<attention::Problem>(
      "attention",
      {{0, 1, 1, 0, 0, 64},
       {kMostOf, 1, 1, 1, 1, 64},
       {1, 1, 1, kMostOf, 1, 128},
       {1, 1, 1, 1, kMostOf, 128},
       {1, 0, 1, 1, 1, 64},
       {1, 6, 3, 1, 1, 64}},
      {{},
       {1, 1, 1, 1, 64},
       {1, 1, 1, 1, 1, 64, 1},
       {-1, 1, 1, 1, 1, 64},
       {kMostOf + 1, 1, 1, 1, 1, 64},
       {1, 1, 1, kMostOf + 1, 1, 64},
       {1, 1, 1, 1, kMostOf + 1, 64},
       {1, 1, 1, 1, -1, 64},
       {1, 1, 1, 1, 1, 32},
       {1, 1, 1, 1, 1, 65},
       {1, 1, 1, 1, 1, 256},
       {1, 1, 0, 1, 1, 64},    // no head of the keys
       {1, 3, 2, 1, 1, 64}});  // queries that do not share heads equally
  expect_sizes<attention::tuned::Problem>("attention of chapter 11",
                                          {{1, 1, 1, 1, 1, 64, 1}, {1, 1, 1, 1, 1, 64, 2}},
                                          {{},
                                           {1, 1, 1, 1, 1, 64},
                                           {1, 1, 1, 1, 1, 64, 0},
                                           {1, 1, 1, 1, 1, 64, 3},
                                           {1, 1, 1, 1, 1, 64, 1, 1}});
  expect_sizes<attention::MaskedProblem>("masks", {{1, 1, 1, 1, 64}},
                                         {{}, {1, 1, 1, 1}, {1, 1, 1, 1, 1, 64}, {1, 1, 1, 1, 65}});
}

TEST(Sizes, OfRope) {
  expect_sizes<rope::ProblemT<false>>(
      "rope", {{0, 0, 0}, {1, 1, 2}},
      {{}, {1, 1}, {1, 1, 2, 1}, {-1, 1, 2}, {1, -1, 2}, {1, 1, -2}, {1, 1, 3}});
}

}  // namespace
}  // namespace cookbook
