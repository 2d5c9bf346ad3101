// SPDX-License-Identifier: MIT
// Every level of a chapter, over shapes, layouts and inputs: one test per level.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "common/harness/report/result.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "tests/failures.hpp"
#include "tests/far_rows.hpp"
#include "tests/layout_cases.hpp"
#include "tests/skips.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook {
namespace {

// Where the list of skips was made: another device skips other cases.
bool is_listed_device() {
  const DeviceInfo& device = device_info();
  const int listed = tested_chapter().model_capability;
  return device.is_simt && device.cc() == (listed > 0 ? listed : 90) &&
         device.smem_per_block_bytes == 232448;
}

Skips& skips() {
  static Skips list(skip_list());
  return list;
}

/// The instances of one matrix of a ladder. Its levels are tested one after another, with the same
/// buffers and the same references: computing those for each level would take longer than the
/// levels do.
class Instances {
 public:
  void select(const Ladder& ladder, Axis axis) {
    if (ladder_ == &ladder && axis_ == axis) return;
    ladder_ = &ladder, axis_ = axis;
    by_case_.clear();
  }
  Instance& get(const std::string& what, const Size& size, const Draw& draw,
                const Variant& variant) {
    auto& instance = by_case_[what];
    if (!instance) {
      instance = std::make_unique<Instance>(*ladder_, size, draw.kind, draw.seed, variant);
    }
    return *instance;
  }
  /// After a failure: what was written outside the outputs is not the next level's.
  void drop(const std::string& what) { by_case_.erase(what); }

 private:
  const Ladder* ladder_ = nullptr;
  Axis axis_ = Axis::shapes;
  std::map<std::string, std::unique_ptr<Instance>> by_case_;
};

Instances& instances() {
  static Instances all;
  return all;
}

class LevelTest : public testing::Test {
 public:
  LevelTest(const Ladder& ladder, const LevelEntry& level, Axis axis)
      : ladder_(ladder), level_(level), axis_(axis) {}

  void TestBody() override {
    note_level(ladder_, level_);
    instances().select(ladder_, axis_);
    if (axis_ == Axis::far_rows) {
      for (const LayoutCase& layout : far_row_cases(ladder_)) {
        const Case run{layout.text(), layout.size, layout.variant, {}, {}, layout.sm_count};
        if (running) note_case(run.what, "");
        note(run, check_far_rows(level_, ladder_, layout));
      }
    } else if (axis_ == Axis::layouts && has_all_layouts() && !is_short_test()) {
      for (const LayoutCase& layout : layout_cases(ladder_)) {
        const CaseDevice device(layout);
        expect_right({layout.text(),
                      layout.size,
                      layout.variant,
                      {{layout.kind, 1}},
                      Schedule{layout.schedule, layout.schedule},
                      layout.sm_count});
      }
    } else {
      for (const AcceptanceRun& run :
           acceptance_runs(Judge::tests, axis_, ladder_, scope_of(ladder_, {2, 1}))) {
        if (run.schedule) set_schedule(*run.schedule, 7);
        expect_right({run.text(), run.size, run.variant, run.draws, run.schedule, 0});
      }
      if (axis_ == Axis::schedules) set_schedule({}, 0);
    }
    report_smallest();
    compare_skips();
    for (const auto& [reason, numbers] : skipped_) {
      note_skipped(ladder_, level_, axis_name(axis_), reason, numbers.size(), cases_);
    }
  }

 private:
  struct Case {
    std::string what;
    Size size;
    Variant variant;
    std::vector<Draw> draws;
    std::optional<Schedule> schedule;
    int sm_count;
  };

  void expect_right(const Case& run) {
    const auto& [what, size, variant, draws, schedule, sm_count] = run;
    CheckResult check;
    try {
      // Before anything is allocated and drawn.
      const auto problem = ladder_.make_problem(size, variant);
      if (const Support support = level_.supports(*problem, device_info()); !support) {
        check = {Fault::unsupported, support.reason};
      } else {
        if (running) note_run(run, 0);
        Instance& instance = instances().get(what, size, draws[0], variant);
        check = check_level(running ? noted(run) : level_, instance, draws);
        if (check.is_failure()) instances().drop(what);
      }
    } catch (const BadSize&) {  // an extent that cannot be zero, such as a head dimension
      check = {Fault::unsupported, "bad size"};
    } catch (const FaultError& error) {  // of host code
      check = {error.fault(), error.what()};
    }
    note(run, check);
  }

  void note_run(const Case& run, std::size_t number) {
    const Draw& draw = run.draws[number % run.draws.size()];
    note_case(with_inputs(run, draw),
              command_of(ladder_, level_, run.size, run.variant, draw, run.schedule, run.sm_count));
  }

  /// The level, which says of each run what it begins with.
  LevelEntry noted(const Case& run) {
    LevelEntry level = level_;
    level.prepare = [this, &run](const AnyProblem& problem, const DevicePointers& pointers) {
      return [this, &run, planned = level_.prepare(problem, pointers),
              number = std::size_t{0}](Stream stream) mutable {
        note_run(run, number++);
        planned(stream);
      };
    };
    return level;
  }

  /// "3x7, normal inputs (few are equal)".
  static std::string with_inputs(const Case& run, const Draw& draw) {
    const std::string kind = fmt::format(", {} inputs", input_kind_name(draw.kind));
    const bool is_said = run.what.find(kind) != std::string::npos;
    return fmt::format("{}{} ({})", run.what, is_said ? "" : kind, input_kind_text(draw.kind));
  }

  void note(const Case& run, const CheckResult& check) {
    const int number = cases_++;
    if (check.status == CheckResult::Status::skipped) {
      skipped_[without_numbers(check.reason)].push_back(number);
      return;
    }
    if (!check.is_failure()) return;
    const double work = work_of(ladder_, run.size);
    if (failures_++ == 0 || work < work_) {
      smallest_ = run, why_ = check.text(), work_ = work, draw_ = {};
      if (run.draws.empty()) return;
      if (check.fault == Fault::host_crash) {  // whatever the inputs are
        draw_ = run.draws[0];
        return;
      }
      // Which of the inputs fail alone, under the device's settings of this case.
      for (const Draw& draw : run.draws) {
        Instance instance(ladder_, run.size, draw.kind, draw.seed, run.variant);
        const CheckResult alone = check_level(level_, instance, instance.drawn(2));
        if (!alone.is_failure()) continue;
        draw_ = draw, why_ = alone.text();
        return;
      }
    }
  }

  /// Of the last level: where all levels are wrong at one element, the reference may be wrong.
  std::string doubt_of_reference() {
    static std::map<std::pair<const Ladder*, Axis>, std::set<std::string>> by_ladder;
    static std::map<std::pair<const Ladder*, Axis>, int> judged;
    std::size_t skipped = 0;
    for (const auto& [reason, numbers] : skipped_) skipped += numbers.size();
    std::set<std::string>& places = by_ladder[{&ladder_, axis_}];
    if (skipped < static_cast<std::size_t>(cases_)) {
      ++judged[{&ladder_, axis_}];
      const std::size_t end = failures_ ? why_.find(": got ") : std::string::npos;
      places.insert(end == std::string::npos ? "" : smallest_.what + why_.substr(0, end));
    }
    const bool all_alike = places.size() == 1 && !places.begin()->empty();
    if (&level_ != &ladder_.levels.back() || !all_alike || judged[{&ladder_, axis_}] < 2) return "";
    return "; all levels are wrong there: check reference_row(), and the bound that it gives, "
           "first";
  }

  /// One line, whatever the number of failures is.
  void report_smallest() {
    const std::string doubt = doubt_of_reference();
    if (failures_ == 0) return;
    std::string text = fmt::format("{} / {}: {} at {}", ladder_.name, level_.name, why_,
                                   draw_ ? with_inputs(smallest_, *draw_) : smallest_.what);
    if (!draw_ && !smallest_.draws.empty()) {
      text += ", one run after another: each is right alone, so a run leaves something behind";
    }
    text += fmt::format(" [{} of {} cases fail]{}", failures_, cases_, doubt);
    text +=
        draw_ ? "; to see lines: " + command_of(ladder_, level_, smallest_.size, smallest_.variant,
                                                *draw_, smallest_.schedule, smallest_.sm_count)
              : "; to repeat: " + command_of_this_test();
    ADD_FAILURE() << text;
  }

  void compare_skips() {
    if (!is_listed_device() || (axis_ == Axis::layouts && is_short_test())) return;
    const std::string level = ladder_.name + "/" + level_.name;
    if (std::getenv("COOKBOOK_WRITE_SKIPS")) {
      skips().set(level, axis_name(axis_), skipped_);
      skips().write();
      return;
    }
    const std::string difference = skips().difference(level, axis_name(axis_), skipped_);
    EXPECT_EQ(difference, "") << level << ", " << axis_name(axis_)
                              << ": not the list in tests/skips (see tests/skips.hpp)";
  }

  const Ladder& ladder_;
  const LevelEntry& level_;
  Axis axis_;
  int cases_ = 0, failures_ = 0;
  // Of the failure with the least work; `draw_`: its inputs, if they fail alone.
  Case smallest_;
  std::string why_;
  double work_ = 0;
  std::optional<Draw> draw_;
  Skips::OfTest skipped_;
};

// Of a level that supports no size, every other test is passed by skipping it. A library lists all
// its candidates in each ladder: one that supports sizes of another ladder is tested there.
void expect_some_support(const Ladder& ladder, const LevelEntry& level) {
  std::string why;
  for (const Ladder& each : tested_chapter().ladders) {
    const LevelEntry* same = each.find(level.name);
    if (!same) continue;
    for (const Size& size : each.test_sizes) {
      const Support support = same->supports(*each.make_problem(size, {}), device_info());
      if (support) return;
      if (&each == &ladder) why = support.reason;
    }
  }
  ADD_FAILURE() << ladder.name << " / " << level.name
                << ": supports() says no to every size of test_sizes (" << why
                << "), so nothing tests this level";
}

class TextsTest : public testing::Test {
 public:
  void TestBody() override {
    for (const Ladder& ladder : tested_chapter().ladders) {
      if (ladder.test_sizes.empty()) ADD_FAILURE() << ladder.name << ": test_sizes is empty";
      for (const LevelEntry& level : ladder.levels) {
        const std::string name = ladder.name + " / " + level.name;
        if (running) note_case(fmt::format("{}, in its claims() or supports()", name), "");
        // The levels of a sidebar are settings of an experiment: they have no prediction each.
        const bool sidebar = ladder.title.rfind("sidebar", 0) == 0;
        if (level.changed.empty()) ADD_FAILURE() << name << ": .changed is empty";
        if (!sidebar && level.expect.empty()) ADD_FAILURE() << name << ": .expect is empty";
        if (!sidebar && level.cost.empty()) ADD_FAILURE() << name << ": .cost is empty";
        const auto problem = ladder.make_problem(ladder.trace_size, {});
        int mechanisms = 0;
        std::set<std::string> identities;
        for (const Claim& claim : level.claims(*problem)) {
          mechanisms += claim.is_mechanism();
          if (!identities.insert(claim_identity(claim)).second) {
            ADD_FAILURE() << name << ": claims twice: " << claim.text;
          }
        }
        if (mechanisms == 0) {
          ADD_FAILURE() << name << ": claims nothing that the SIMT backend checks";
        }
        if (tested_chapter().is_capstone()) expect_some_support(ladder, level);
      }
    }
  }
};

// What a name must be to stand in file names, on command lines and in lists: lower_snake_case.
bool is_identifier(const std::string& name) {
  static const std::regex pattern("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  return std::regex_match(name, pattern);
}

void expect_identifier(const std::string& name) {
  if (!is_identifier(name)) ADD_FAILURE() << "the name '" << name << "' is not lower_snake_case";
}

// Why a level is not called as its file, level_<number>_<name>.cuh, or nothing.
std::string file_complaint(const LevelEntry& level) {
  const std::string file = level.source.substr(level.source.find_last_of('/') + 1);
  static const std::regex pattern("level_[0-9]+_(.*)\\.cuh");
  std::smatch found;
  if (!std::regex_match(file, found, pattern) || found[1] == level.name) return "";
  return fmt::format("{} says .name = \"{}\": it must be the file's", file, level.name);
}

class NamesTest : public testing::Test {
 public:
  void TestBody() override {
    for (const std::string& file : unlisted_files(tested_chapter())) {
      ADD_FAILURE() << file << " is in no ladder: ladder.hpp lists no level of it in rows<...>()";
    }
    for (const char* name : {"", "registers p", "ping-pong", "__expf", "ex2.approx", "b[k]",
                             "4_bytes", "kb_", "Tile", "a__b"}) {
      EXPECT_FALSE(is_identifier(name)) << name;
    }
    EXPECT_TRUE(is_identifier("register_2d"));
    for (const Ladder& ladder : tested_chapter().ladders) {
      expect_identifier(ladder.name);
      for (const LevelEntry& level : ladder.levels) {
        expect_identifier(level.name);
        // Chapters have files with several levels.
        const std::string wrong = tested_chapter().is_capstone() ? file_complaint(level) : "";
        if (!wrong.empty()) ADD_FAILURE() << wrong;
      }
    }
    LevelEntry level;
    level.name = "shuffle", level.source = "a/level_1_shuffle.cuh";
    EXPECT_EQ(file_complaint(level), "");
    level.name = "shufle";
    EXPECT_EQ(file_complaint(level),
              "level_1_shuffle.cuh says .name = \"shufle\": it must be the file's");
    for (const LevelEntry& exercise : tested_chapter().exercises) {
      expect_identifier(exercise.name);
      const auto& ladders = tested_chapter().ladders;
      EXPECT_TRUE(exercise.ladder.empty() ||
                  std::any_of(ladders.begin(), ladders.end(),
                              [&](const Ladder& each) { return each.name == exercise.ladder; }))
          << exercise.name << ": no ladder is called " << exercise.ladder;
    }
  }
};

const bool kLevelsRegistered = [] {
#if COOKBOOK_SIMT
  simt::report_host_crashes();  // problems are made here, before main()
#endif
  register_test<TextsTest>(tested_prefix(), "EveryLevelSaysWhatItChangesExpectsAndCosts");
  register_test<NamesTest>(tested_prefix(), "NamesAreIdentifiers");
  for (const Ladder& ladder : tested_chapter().ladders) {
    const bool has_far_rows =
        has_all_layouts() && !is_short_test() && !far_row_cases(ladder).empty();
    for (const Axis axis : {Axis::shapes, Axis::inputs, Axis::layouts, Axis::far_rows, Axis::empty,
                            Axis::schedules, Axis::repeats}) {
      for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
        const LevelEntry& level = ladder.levels[i];
        const bool is_last = i + 1 == ladder.levels.size();
        if (axis == Axis::inputs && is_short_test()) continue;
        if (axis == Axis::schedules && !device_info().is_simt) continue;
        if (axis == Axis::far_rows && (!device_info().is_simt || !has_far_rows)) continue;
        if (axis == Axis::repeats && (device_info().is_simt || !is_last)) continue;
        register_test<LevelTest>(fmt::format("{}_{}", tested_prefix(), ladder.name),
                                 fmt::format("{}_{}_{}", i, level.name, axis_name(axis)),
                                 std::cref(ladder), std::cref(level), axis);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cookbook
