// SPDX-License-Identifier: MIT
// How the tests of levels say that one failed: a line with what is wrong, and the command that
// repeats it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "common/harness/verdict/acceptance.hpp"
#include "tests/chapters.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#endif

namespace cookbook {

inline std::string quoted(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain ? path : "'" + path + "'";
}

/// The command that traces `level` in a case and says what is wrong, line by line.
/// Of all levels if `level` has no name.
inline std::string command_of(const Ladder& ladder, const LevelEntry& level, const Size& size,
                              const Variant& variant = {}, const Draw& draw = {},
                              const std::optional<Schedule>& schedule = {}, int sm_count = 0) {
  static const char* const copies[] = {"late", "early", "random:7"};
  static const char* const blocks[] = {"forward", "reverse", "random:7"};
  std::string text;
  if (sm_count != 0 && sm_count != 4) text += fmt::format("COOKBOOK_SIMT_SMS={} ", sm_count);
  if (schedule && schedule->copies != 0) {
    text += fmt::format("COOKBOOK_SIMT_ASYNC={} ", copies[schedule->copies]);
  }
  if (schedule && schedule->blocks != 0) {
    text += fmt::format("COOKBOOK_SIMT_ORDER={} ", blocks[schedule->blocks]);
  }
  const Chapter& chapter = tested_chapter();
  const std::string& file = ladder.levels.front().source;
  text += "./run " + (chapter.is_capstone() ? quoted(file.substr(0, file.find_last_of('/')))
                                            : std::to_string(chapter.number));
  text += " --check --explain";
  if (chapter.ladders.size() > 1) text += " --ladder " + ladder.name;
  if (!level.name.empty()) text += " --level " + level.name;
  if (size != ladder.trace_size) text += " --size " + size_text(size);
  if (draw.kind != InputKind::normal)
    text += fmt::format(" --inputs {}", input_kind_name(draw.kind));
  if (draw.seed != 1) text += fmt::format(" --seed {}", draw.seed);
  for (const TensorSpec& spec : ladder.make_problem(ladder.trace_size, {})->tensors()) {
    const Layout layout = variant.of(spec.name);
    if (layout.extra_pitch) text += fmt::format(" --pitch {}={}", spec.name, layout.extra_pitch);
    if (layout.misalign_elements) {
      text += fmt::format(" --base {}={}", spec.name, layout.misalign_elements);
    }
  }
  return text;
}

/// The command that runs one test again.
inline std::string command_of_test(const std::string& test) {
  return quoted(std::filesystem::read_symlink("/proc/self/exe")) + " --gtest_filter=" + test;
}
inline std::string command_of_this_test() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return command_of_test(fmt::format("{}.{}", test.test_suite_name(), test.name()));
}

/// What a process of tests runs now, for the line that it gets if it ends there: in memory that its
/// parent shares.
struct RunningCase {
  char test[256]{};      ///< "suite.name"
  char level[128]{};     ///< what the names of the level's tests begin with
  char at[512]{};        ///< the case, for people
  char command[2048]{};  ///< that repeats it
};
inline RunningCase* running = nullptr;  ///< null: nobody asks

inline void note_running(char* field, std::size_t size, const std::string& text) {
  text.copy(field, std::min(text.size(), size - 1));
  field[std::min(text.size(), size - 1)] = 0;
}
/// Which level the running test is about: its others are left out after a hang.
inline void note_level(const Ladder& ladder, const LevelEntry& level) {
  if (!running) return;
  note_running(running->level, sizeof(running->level),
               fmt::format("{}_{}", &level - ladder.levels.data(), level.name));
}
/// What the running test is about to do. Whoever asks where nobody does, spends time on texts.
inline void note_case(const std::string& at, const std::string& command) {
  note_running(running->at, sizeof(running->at), at);
  note_running(running->command, sizeof(running->command), command);
}

/// Adds to the file that `./run test PATH` reads, and says at its end what was skipped: `skipped`
/// of the `of` cases of a test. A line at once: the process may end before the next test.
inline void note_skipped(const Ladder& ladder, const LevelEntry& level, const std::string& test,
                         const std::string& reason, std::size_t skipped, int of) {
  const char* file = std::getenv("COOKBOOK_SKIPPED");
  if (!file) return;
  const nlohmann::json line{{"level", ladder.name + " / " + level.name},
                            {"test", test},
                            {"reason", reason},
                            {"skipped", skipped},
                            {"of", of}};
  std::ofstream(file, std::ios::app) << line.dump() + "\n" << std::flush;
}

/// In place of GoogleTest's own output.
class LinePerFailure : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = fmt::format("{}.{}: ", test.test_suite_name(), test.name());
    if (!running) return;
    *running = {};
    note_running(running->test, sizeof(running->test), test_.substr(0, test_.size() - 2));
  }
  void OnTestEnd(const testing::TestInfo&) override { test_.clear(); }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::string text = part.message();
    if (text.rfind("Failed\n", 0) == 0) text.erase(0, 7);
    std::replace(text.begin(), text.end(), '\n', ' ');
    // Of what a test has not caught GoogleTest knows no more than its text.
    if (running && text.find("xception ") != std::string::npos &&
        text.find(" thrown in the test ") != std::string::npos) {
#if COOKBOOK_SIMT
      const std::string line = simt::last_throw();
      if (!line.empty() && text.find(line) == std::string::npos) text += " at " + line;
#endif
      const std::string name = test_.substr(0, test_.size() - 2);
      if (running->at[0]) text += fmt::format(" at {}", running->at);
      text += "; to repeat: " +
              (running->command[0] ? std::string(running->command) : command_of_test(name));
    }
    fmt::print("{}{}\n", test_, text);
  }
  std::string test_;  // GoogleTest holds its lock while it calls, and cannot be asked
};

inline void print_line_per_failure() {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new LinePerFailure);
}

}  // namespace cookbook
