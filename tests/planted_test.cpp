// SPDX-License-Identifier: MIT
// Planted bugs that the comparison must catch on either backend, each by its own message.
#include <gtest/gtest.h>

#include "common/harness/check.hpp"
#include "tests/planted/reverse.hpp"

namespace cookbook::planted {
namespace {

template <Bug kBug>
CheckResult check(const Size& size = {4, 64}, const Variant& variant = {}) {
  const Ladder ladder = reverse_ladder<kBug>();
  Instance instance(ladder, size, InputKind::normal, 1, variant);
  return check_level(ladder.levels[0], instance);
}

void expect_caught(const CheckResult& result, const std::string& words) {
  EXPECT_EQ(result.status, CheckResult::Status::mismatch);
  EXPECT_NE(result.reason.find(words), std::string::npos) << result.reason;
}

TEST(Planted, TheRightKernelPasses) {
  for (const Size& size : reverse_ladder<Bug::none>().test_sizes) {
    EXPECT_EQ(check<Bug::none>(size).status, CheckResult::Status::ok);
    EXPECT_EQ(check<Bug::none>(size, {3, 1}).status, CheckResult::Status::ok);
  }
}

TEST(Planted, OffByOne) { expect_caught(check<Bug::off_by_one>(), "out[0][0]: got "); }
TEST(Planted, UnwrittenTail) {
  expect_caught(check<Bug::unwritten_tail>({4, 40}), "out[0][32] was never written");
}
TEST(Planted, UnwrittenTailIsRightWhereThereIsNoTail) {
  EXPECT_EQ(check<Bug::unwritten_tail>().status, CheckResult::Status::ok);
}
TEST(Planted, StaleOutput) {
  expect_caught(check<Bug::stale_output>(),
                "right on the first run only: out[0][0] was never written");
}
TEST(Planted, NanProduced) {
  expect_caught(check<Bug::nan_produced>(), "out[0][7]: got ");
  EXPECT_NE(check<Bug::nan_produced>().reason.find("nan"), std::string::npos);
}
TEST(Planted, ReversedIndexAtOneOddSize) {
  EXPECT_EQ(check<Bug::wrong_at_one_size>({4, 32}).status, CheckResult::Status::ok);
  EXPECT_EQ(check<Bug::wrong_at_one_size>({4, 34}).status, CheckResult::Status::ok);
  expect_caught(check<Bug::wrong_at_one_size>({4, 33}), "out[0][0]: got ");
}
TEST(Planted, PaddingWritten) {
  expect_caught(check<Bug::padding_written>({4, 64}, {2, 0}),
                "out[0][64] is padding between rows and was written");
}
TEST(Planted, InputChanged) {
  expect_caught(check<Bug::input_changed>(), "input `in` was changed");
}
TEST(Planted, OutOfBoundsStore) {
  expect_caught(check<Bug::out_of_bounds_store>(), "wrote outside `out`: guard band changed");
}
TEST(Planted, DiffersBetweenRuns) {
  expect_caught(check<Bug::differs_between_runs>(), "right on the first run only: out[0][3]: got ");
}
TEST(Planted, TooManyThreads) { expect_caught(check<Bug::too_many_threads>(), "1024"); }

#if COOKBOOK_SIMT
TEST(Planted, BarrierNotReachedByAll) {
  expect_caught(check<Bug::barrier_not_reached_by_all>(), "deadlock in block (0,0,0)");
}
#endif

// NaN positions must match: a kernel that loses the input's NaN, or spreads it, is wrong.
TEST(Planted, NanMustStayWhereItIs) {
  const Ladder ladder = reverse_ladder<Bug::none>();
  Instance instance(ladder, {4, 64}, InputKind::one_nan, 1);
  EXPECT_EQ(check_level(ladder.levels[0], instance).status, CheckResult::Status::ok);
  const Ladder wrong = reverse_ladder<Bug::off_by_one>();
  Instance other(wrong, {4, 64}, InputKind::one_nan, 1);
  EXPECT_EQ(check_level(wrong.levels[0], other).status, CheckResult::Status::mismatch);
}

}  // namespace
}  // namespace cookbook::planted
