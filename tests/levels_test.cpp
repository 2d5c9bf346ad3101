// SPDX-License-Identifier: MIT
// Every level of a chapter, over shapes, layouts and inputs: one test a level.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/harness/check.hpp"
#include "common/harness/options.hpp"
#include "tests/chapters.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/launch.hpp"
#endif

namespace cookbook {
namespace {

enum class Matrix { shapes, inputs, layouts, empty, schedules, repeats };

// A name for a test that fails, and the failure itself.
void expect_right(const LevelEntry& level, const Ladder& ladder, const Size& size, InputKind kind,
                  const Variant& variant = {}) {
  Instance instance(ladder, size, kind, 1, variant);
  // On the CPU a second run can differ by what the first left behind, whatever the inputs are.
  const int repeats = device_info().is_simt && kind != InputKind::normal ? 1 : 2;
  const CheckResult check = check_level(level, instance, repeats);
  EXPECT_NE(check.status, CheckResult::Status::mismatch)
      << ladder.name << " / " << level.name << " at " << size_text(size) << ", "
      << input_kind_name(kind) << ", pitch +" << variant.extra_pitch << ", base +"
      << variant.misalign_elements << ": " << check.reason;
}

class LevelTest : public testing::Test {
 public:
  LevelTest(const Ladder& ladder, const LevelEntry& level, Matrix matrix)
      : ladder_(ladder), level_(level), matrix_(matrix) {}

  void TestBody() override {
    switch (matrix_) {
      case Matrix::shapes:
        for (const Size& size : ladder_.test_sizes) {
          expect_right(level_, ladder_, size, InputKind::normal);
          expect_right(level_, ladder_, size, InputKind::integers);
        }
        break;
      case Matrix::inputs:
        for (const InputKind kind : all_input_kinds()) {
          expect_right(level_, ladder_, ladder_.trace_size, kind);
        }
        break;
      case Matrix::layouts:
        for (const Variant variant : {Variant{1, 0}, Variant{8, 0}, Variant{0, 1}, Variant{5, 3}}) {
          expect_right(level_, ladder_, ladder_.trace_size, InputKind::normal, variant);
        }
        break;
      case Matrix::empty:
        for (std::size_t dim = 0; dim < ladder_.dims.size(); ++dim) {
          Size size = ladder_.trace_size;
          size[dim] = 0;
          try {
            expect_right(level_, ladder_, size, InputKind::normal);
          } catch (const BadSize&) {  // an extent that cannot be zero, such as a head dimension
          }
        }
        break;
      case Matrix::schedules:
#if COOKBOOK_SIMT
        for (const auto schedule :
             {simt::AsyncSchedule::late, simt::AsyncSchedule::early, simt::AsyncSchedule::random}) {
          simt::set_async_schedule(schedule, 7);
          expect_right(level_, ladder_, ladder_.trace_size, InputKind::integers);
        }
        simt::set_async_schedule(simt::AsyncSchedule::late, 0);
#endif
        break;
      case Matrix::repeats: {  // a race that a GPU loses once in a while shows as another hash
        Instance instance(ladder_, ladder_.check_size, InputKind::normal, 1);
        const CheckResult check = check_level(level_, instance, 100);
        EXPECT_NE(check.status, CheckResult::Status::mismatch)
            << ladder_.name << " / " << level_.name << ", one of 100 runs: " << check.reason;
        break;
      }
    }
  }

 private:
  const Ladder& ladder_;
  const LevelEntry& level_;
  Matrix matrix_;
};

class TextsTest : public testing::Test {
 public:
  void TestBody() override {
    for (const Ladder& ladder : tested_chapter().ladders) {
      EXPECT_FALSE(ladder.test_sizes.empty()) << ladder.name;
      for (const LevelEntry& level : ladder.levels) {
        // The rows of a sidebar are an experiment's settings, not rungs with a prediction each.
        const bool sidebar = ladder.title.rfind("sidebar", 0) == 0;
        EXPECT_FALSE(level.changed.empty()) << ladder.name << " / " << level.name;
        EXPECT_FALSE(!sidebar && (level.expect.empty() || level.cost.empty()))
            << ladder.name << " / " << level.name;
        const auto problem = ladder.make_problem(ladder.trace_size, {});
        int mechanisms = 0;
        for (const Claim& claim : level.claims(*problem)) mechanisms += claim.is_mechanism();
        EXPECT_GE(mechanisms, 1) << ladder.name << " / " << level.name
                                 << " claims nothing that the SIMT backend checks";
      }
    }
  }
};

const bool kRegistered = [] {
  const Chapter& chapter = tested_chapter();
  testing::RegisterTest(fmt::format("chapter_{}", chapter.number).c_str(),
                        "EveryLevelSaysWhatItChangesExpectsAndCosts", nullptr, nullptr, __FILE__,
                        __LINE__, []() -> testing::Test* { return new TextsTest; });
  for (const Ladder& ladder : chapter.ladders) {
    for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
      const LevelEntry& level = ladder.levels[i];
      for (const auto& [matrix, name] :
           {std::pair{Matrix::shapes, "shapes"}, std::pair{Matrix::inputs, "inputs"},
            std::pair{Matrix::layouts, "layouts"}, std::pair{Matrix::empty, "empty"},
            std::pair{Matrix::schedules, "schedules"}, std::pair{Matrix::repeats, "repeats"}}) {
        // Schedules are the model's to choose; on a GPU last levels run often instead.
        const bool is_last = i + 1 == ladder.levels.size();
        if (matrix == Matrix::schedules && !device_info().is_simt) continue;
        if (matrix == Matrix::repeats && (device_info().is_simt || !is_last)) continue;
        testing::RegisterTest(fmt::format("chapter_{}_{}", chapter.number, ladder.name).c_str(),
                              fmt::format("{}_{}_{}", i, level.name, name).c_str(), nullptr,
                              nullptr, __FILE__, __LINE__,
                              [&ladder, &level, matrix = matrix]() -> testing::Test* {
                                return new LevelTest(ladder, level, matrix);
                              });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
