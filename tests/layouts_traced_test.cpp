// SPDX-License-Identifier: MIT
// Planted bugs that the tracer sees in some layouts only.
#include <gtest/gtest.h>

#include "common/harness/run/traced.hpp"
#include "tests/layout_cases.hpp"
#include "tests/planted/rows.hpp"
#include "tests/text.hpp"

namespace cookbook::planted::rows_copy {
namespace {

// All findings and wrong results in traced_layout_cases(), a line each.
template <Bug kBug>
std::string all_findings() {
  const Ladder ladder = rows_copy::ladder<kBug>();
  std::string text;
  for (const LayoutCase& layout : traced_layout_cases(ladder)) {
    const CaseDevice device(layout);
    Instance instance(ladder, layout.size, layout.kind, 1, layout.variant);
    const TracedRun traced = trace_level(ladder.levels[0], instance);
    for (const FoundFault& finding : traced.findings) {
      text += layout.text() + ": " + finding.message + "\n";
    }
    if (traced.check.status == CheckResult::Status::mismatch) text += traced.check.reason + "\n";
  }
  return text;
}

template <Bug kBug>
void expect_found(const std::string& words) {
  const std::string found = all_findings<kBug>();
  EXPECT_CONTAINS(found, words);
}

TEST(PlantedTracedLayouts, TheRightKernelHasNoFinding) { EXPECT_EQ(all_findings<Bug::none>(), ""); }
TEST(PlantedTracedLayouts, OutOfBoundsAtOddSizes) {
  expect_found<Bug::no_bounds_check>("out-of-bounds");
  expect_found<Bug::load_past_the_end>("reads 4 bytes");
}
TEST(PlantedTracedLayouts, VectorsWhereOneTensorIsOff) {
  expect_found<Bug::vectors_without_out>("misaligned");
  expect_found<Bug::vectors_without_base>("misaligned");
}

}  // namespace
}  // namespace cookbook::planted::rows_copy
