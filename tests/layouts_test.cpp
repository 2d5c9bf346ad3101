// SPDX-License-Identifier: MIT
// The cases that levels are tested with, and planted bugs that only some of them show.
#include "tests/layout_cases.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "common/harness/verdict/check.hpp"
#include "tests/far_rows.hpp"
#include "tests/first_level.hpp"
#include "tests/folder.hpp"
#include "tests/planted/rows.hpp"
#include "tests/skips.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook::planted::rows_copy {
namespace {

// What is wrong in the first case of layout_cases() that fails, or nothing.
template <Bug kBug>
std::string first_wrong([[maybe_unused]] int sm_count = 0) {
  const Ladder ladder = rows_copy::ladder<kBug>();
  std::string wrong;
  for (const LayoutCase& layout : layout_cases(ladder)) {
#if COOKBOOK_SIMT
    simt::set_sm_count(sm_count ? sm_count : layout.sm_count);
#endif
    Instance instance(ladder, layout.size, layout.kind, 1, layout.variant);
    const CheckResult check = check_level(ladder.levels[0], instance, instance.drawn(1));
    if (check.status != CheckResult::Status::mismatch) continue;
    wrong = layout.text() + ": " + check.reason;
    break;
  }
#if COOKBOOK_SIMT
  simt::set_sm_count(0);
#endif
  return wrong;
}

template <Bug kBug>
CheckResult check(const Size& size, const Variant& variant = {}) {
  return check_first(rows_copy::ladder<kBug>(), size, 1, InputKind::normal, variant);
}

template <Bug kBug>
CheckResult check_new_inputs() {
  const Ladder ladder = rows_copy::ladder<kBug>();
  Instance instance(ladder, {3, 64}, InputKind::normal, 1);
  const Draw first{InputKind::normal, 1};
  return check_level(ladder.levels[0], instance, {first, {InputKind::integers, 2}, first});
}

TEST(PlantedLayouts, TheRightKernelPasses) {
  EXPECT_EQ(first_wrong<Bug::none>(), "");
  EXPECT_EQ(check_new_inputs<Bug::none>().status, CheckResult::Status::ok);
}

// Guard bands and padding of `in` differ from those of `out`, so copies of them are seen.
TEST(PlantedLayouts, CopyWithoutBoundsCheck) {
  EXPECT_EQ(check<Bug::no_bounds_check>({1, 64}).status, CheckResult::Status::ok);
  expect_caught(check<Bug::no_bounds_check>({1, 33}), "wrote outside `out`: guard band changed");
  Variant padded;
  padded.tensors["in"] = padded.tensors["out"] = {31, 0};
  expect_caught(check<Bug::padding_copied>({2, 33}, padded),
                "out[0][33] is padding between rows and was written");
}
TEST(PlantedLayouts, TailOfTheVectorPath) {
  EXPECT_EQ(check<Bug::short_tail>({3, 63}).status, CheckResult::Status::ok);  // no vectors there
  EXPECT_CONTAINS(first_wrong<Bug::short_tail>(), "was never written");
}
#if COOKBOOK_SIMT
TEST(PlantedLayouts, WorkLostAtOtherNumbersOfSms) {
  EXPECT_EQ(check<Bug::remainder_of_sms>({12, 40}).status, CheckResult::Status::ok);
  EXPECT_CONTAINS(first_wrong<Bug::remainder_of_sms>(), "7 SMs");
}
#endif

TEST(PlantedLayouts, StateBetweenRuns) {
  expect_caught(
      check_new_inputs<Bug::flag_stays>(),
      "right on the first inputs only (normal: ordinary numbers, few are equal), wrong on "
      "integers ones (whole numbers from -3 to 3: many are equal): out[1][0] was never "
      "written");
  // Right as often as the inputs stay the same.
  EXPECT_EQ(check_first(rows_copy::ladder<Bug::keeps_first_inputs>(), {3, 64}, 3).status,
            CheckResult::Status::ok);
  expect_caught(check_new_inputs<Bug::keeps_first_inputs>(), "many are equal): out[0][0]: got ");
}

#if COOKBOOK_SIMT
template <Bug kBug>
CheckResult check_far(const char* tensor) {
  const Ladder ladder = rows_copy::ladder<kBug>();
  for (const LayoutCase& layout : far_row_cases(ladder)) {
    if (layout.variant.of(tensor).extra_pitch < 1 << 30) continue;
    return check_far_rows(ladder.levels[0], ladder, layout);
  }
  ADD_FAILURE() << "no case for " << tensor;
  return {};
}

TEST(PlantedLayouts, OffsetsIn32Bits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* tensor : {"in", "out"}) {
    const CheckResult right = check_far<Bug::none>(tensor);
    EXPECT_EQ(right.status, CheckResult::Status::ok) << right.reason;
    expect_caught(check_far<Bug::row_in_unsigned>(tensor), "out[");
    EXPECT_EXIT(check_far<Bug::row_in_int>(tensor), testing::ExitedWithCode(3),
                "not mapped in a kernel.*rows.cu");
  }
}
#endif

TEST(LayoutCases, CoverEveryTensorSizeAndPair) {
  const Ladder ladder = rows_copy::ladder<Bug::none>();
  const auto cases = layout_cases(ladder);
  std::set<Size> sizes;
  int only_out_off = 0, odd_and_aligned = 0;
  for (const LayoutCase& layout : cases) {
    sizes.insert(layout.size);
    const Layout in = layout.variant.of("in"), out = layout.variant.of("out");
    const bool in_aligned =
        (layout.size[1] + in.extra_pitch) % 4 == 0 && in.misalign_elements % 4 == 0;
    const bool out_aligned =
        (layout.size[1] + out.extra_pitch) % 4 == 0 && out.misalign_elements % 4 == 0;
    only_out_off += in_aligned && !out_aligned;
    odd_and_aligned += in_aligned && out_aligned && layout.size[1] % 2 != 0;
  }
  for (const Size& size : ladder.test_sizes) EXPECT_TRUE(sizes.count(size)) << size[1];
  EXPECT_TRUE(sizes.count({7, 127}));  // made from {8, 128}
  EXPECT_GE(only_out_off, 3);
  EXPECT_GE(odd_and_aligned, 8);
  EXPECT_LE(cases.size(), 100u);
}

TEST(Pairwise, EveryPairIsInARowAndRowsAreFew) {
  const std::vector<int> counts = {5, 4, 3, 2, 5};
  const auto rows = pairwise(counts);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (std::size_t j = i + 1; j < counts.size(); ++j) {
      std::set<std::pair<int, int>> pairs;
      for (const auto& row : rows) pairs.insert({row[i], row[j]});
      EXPECT_EQ(pairs.size(), static_cast<std::size_t>(counts[i] * counts[j])) << i << ", " << j;
    }
  }
  EXPECT_LE(rows.size(), 40u);
  EXPECT_EQ(rows, pairwise(counts));
  EXPECT_EQ(pairwise({3}).size(), 3u);
}

TEST(Skips, AreComparedWithTheList) {
  const Folder folder;
  const std::string file = folder / "list/chapter_1.txt";
  Skips list(file);
  const Skips::OfTest before = {{"needs # bytes", {0, 1, 2, 5}}};
  list.set("copy/known", "shapes", before);
  list.set("copy/runs_all", "shapes", {});
  list.write();
  const Skips read(file);
  EXPECT_EQ(read.difference("copy/known", "shapes", before), "");
  EXPECT_EQ(read.difference("copy/runs_all", "shapes", {}), "");
  EXPECT_NE(read.difference("copy/known", "shapes", {{"needs # bytes", {0, 1, 2}}}), "");
  EXPECT_NE(read.difference("copy/known", "shapes", {{"another reason", {0, 1, 2, 5}}}), "");
  EXPECT_NE(read.difference("copy/known", "shapes", {}), "");
  EXPECT_NE(read.difference("copy/known", "layouts", before), "");
  EXPECT_NE(read.difference("copy/runs_all", "shapes", before), "");
  EXPECT_EQ(read.difference("copy/mine", "shapes", before), "");  // a reader's own level
  EXPECT_EQ(without_numbers("needs 1234 bytes of 99"), "needs # bytes of #");
}

// If a level no longer supports a case, the list of skips shows it.
TEST(PlantedLayouts, RefusesAnOddPitch) {
  const auto skipped = [](const Ladder& ladder) {
    Skips::OfTest result;
    int number = 0;
    for (const LayoutCase& layout : layout_cases(ladder)) {
      const auto problem = ladder.make_problem(layout.size, layout.variant);
      const Support support = ladder.levels[0].supports(*problem, device_info());
      if (!support) result[support.reason].push_back(number);
      ++number;
    }
    return result;
  };
  const Folder folder;
  Skips list(folder / "list.txt");
  list.set("copy_rows/copy_rows", "layouts", skipped(rows_copy::ladder<Bug::none>()));
  const std::string difference = list.difference(
      "copy_rows/copy_rows", "layouts", skipped(rows_copy::ladder<Bug::refuses_odd_pitch>()));
  EXPECT_CONTAINS(difference, "which it ran before: odd pitch");
}

}  // namespace
}  // namespace cookbook::planted::rows_copy
