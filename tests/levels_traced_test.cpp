// SPDX-License-Identifier: MIT
// Every level of a chapter under the tracer: its claims hold and nothing is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/harness/exercise.hpp"
#include "tests/chapters.hpp"

namespace cookbook {
namespace {

class TracedLevelTest : public testing::Test {
 public:
  TracedLevelTest(const Ladder& ladder, const LevelEntry& level) : ladder_(ladder), level_(level) {}

  void TestBody() override {
    Instance instance(ladder_, ladder_.trace_size, InputKind::normal, 1);
    const TracedRun traced = trace_level(level_, instance);
    EXPECT_EQ(traced.check.status, CheckResult::Status::ok) << traced.check.reason;
    for (const std::string& finding : traced.findings) ADD_FAILURE() << finding;
    int checked = 0;
    for (const ClaimResult& claim : traced.claims) {
      if (!claim.claim.is_mechanism()) continue;  // speed is a GPU's to show
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

const bool kRegistered = [] {
  const Chapter& chapter = tested_chapter();
  for (const Ladder& ladder : chapter.ladders) {
    for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
      const LevelEntry& level = ladder.levels[i];
      testing::RegisterTest(
          fmt::format("traced_chapter_{}_{}", chapter.number, ladder.name).c_str(),
          fmt::format("{}_{}", i, level.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&ladder, &level]() -> testing::Test* { return new TracedLevelTest(ladder, level); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
