// SPDX-License-Identifier: MIT
// Every level of a chapter under the tracer: its claims hold and nothing is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/backend/simt/launch.hpp"
#include "common/harness/exercise.hpp"
#include "tests/chapters.hpp"
#include "tests/layout_cases.hpp"

namespace cookbook {
namespace {

class TracedLevelTest : public testing::Test {
 public:
  TracedLevelTest(const Ladder& ladder, const LevelEntry& level) : ladder_(ladder), level_(level) {}

  void TestBody() override {
    Instance instance(ladder_, ladder_.trace_size, InputKind::normal, 1);
    // Instructions without a model: tests/skips lists these levels, so none is added unnoticed.
    const Support support = level_.supports(instance.problem(), device_info());
    if (support.reason.rfind("the SIMT backend has no ", 0) == 0) GTEST_SKIP() << support.reason;
    const TracedRun traced = trace_level(level_, instance);
    EXPECT_EQ(traced.check.status, CheckResult::Status::ok) << traced.check.reason;
    for (const std::string& finding : traced.findings) ADD_FAILURE() << finding;
    int checked = 0;
    for (const ClaimResult& claim : traced.claims) {
      if (!claim.claim.is_mechanism()) continue;  // only a GPU shows speed
      ++checked;
      ASSERT_TRUE(claim.holds.has_value()) << claim.claim.text << ": was not checked";
      EXPECT_TRUE(*claim.holds) << claim.claim.text << ": measured " << claim.measured;
    }
    EXPECT_GE(checked, 1) << "no claim that the tracer can check";
    if (HasFailure()) fmt::print("{}", traced.report);
  }

 private:
  const Ladder& ladder_;
  const LevelEntry& level_;
};

// Odd sizes and layouts have accesses out of bounds that the round traced size does not have.
// Claims are about the traced size.
class TracedLayoutsTest : public testing::Test {
 public:
  TracedLayoutsTest(const Ladder& ladder, const LevelEntry& level)
      : ladder_(ladder), level_(level) {}

  void TestBody() override {
    std::vector<LayoutCase> cases = traced_layout_cases(ladder_);
    // The rows of a sidebar are one kernel in many configurations.
    if (ladder_.title.rfind("sidebar", 0) == 0) cases.resize(3);
    for (const LayoutCase& layout : cases) {
      const auto problem = ladder_.make_problem(layout.size, layout.variant);
      if (!level_.supports(*problem, device_info())) continue;
      Instance instance(ladder_, layout.size, layout.kind, 1, layout.variant);
      const TracedRun traced = trace_level(level_, instance);
      EXPECT_NE(traced.check.status, CheckResult::Status::mismatch)
          << layout.text() << ": " << traced.check.reason;
      for (const std::string& finding : traced.findings) {
        ADD_FAILURE() << layout.text() << ": " << finding;
      }
    }
  }

 private:
  const Ladder& ladder_;
  const LevelEntry& level_;
};

struct TracedSize {
  Size size;
  int sms;  // 0: as many as the traced size has
};

// Shapes, and numbers of SMs, for which a level launches kernels that it launches neither at the
// traced size nor at the small odd ones.
std::vector<TracedSize> more_traced_sizes(const Ladder& ladder) {
  if (tested_prefix() != "chapter_8" || ladder.levels.size() > 1) return {};
  if (ladder.name.rfind("gemm", 0) == 0) {
    return {{{8, 12, 8264}, 0},   // stream-K
            {{8, 12, 3080}, 60},  // K divided through L2: among 49 blocks, and among seven
            {{72, 72, 6152}, 8}};
  }
  if (ladder.name.rfind("batch", 0) == 0) {
    return {{{3, 200, 32}, 0}, {{200, 3, 56}, 0}, {{16, 72, 120}, 0}};
  }
  return {};
}

class TracedSizesTest : public testing::Test {
 public:
  TracedSizesTest(const Ladder& ladder, const LevelEntry& level) : ladder_(ladder), level_(level) {}

  void TestBody() override {
    for (const auto& [size, sms] : more_traced_sizes(ladder_)) {
      simt::set_sm_count(sms);
      Instance instance(ladder_, size, InputKind::normal, 1);
      const TracedRun traced = trace_level(level_, instance);
      EXPECT_EQ(traced.check.status, CheckResult::Status::ok) << traced.check.reason;
      for (const std::string& finding : traced.findings) ADD_FAILURE() << finding;
    }
    simt::set_sm_count(0);
  }

 private:
  const Ladder& ladder_;
  const LevelEntry& level_;
};

const bool kRegistered = [] {
  const Chapter& chapter = tested_chapter();
  for (const Ladder& ladder : chapter.ladders) {
    for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
      const LevelEntry& level = ladder.levels[i];
      testing::RegisterTest(
          fmt::format("traced_{}_{}", tested_prefix(), ladder.name).c_str(),
          fmt::format("{}_{}", i, level.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&ladder, &level]() -> testing::Test* { return new TracedLevelTest(ladder, level); });
      if (!more_traced_sizes(ladder).empty()) {
        testing::RegisterTest(
            fmt::format("traced_{}_{}", tested_prefix(), ladder.name).c_str(),
            fmt::format("{}_{}_sizes", i, level.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
            [&ladder, &level]() -> testing::Test* { return new TracedSizesTest(ladder, level); });
      }
      if (!has_all_layouts()) continue;
      testing::RegisterTest(
          fmt::format("traced_{}_{}", tested_prefix(), ladder.name).c_str(),
          fmt::format("{}_{}_layouts", i, level.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&ladder, &level]() -> testing::Test* { return new TracedLayoutsTest(ladder, level); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
