// SPDX-License-Identifier: MIT
// How the tests of levels say that one failed: a line with what is wrong, and the command that
// repeats it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "common/harness/verdict/acceptance.hpp"
#include "tests/chapters.hpp"

namespace cookbook {

inline std::string quoted(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return plain ? path : "'" + path + "'";
}

/// The command that traces `level` in a case and says what is wrong, line by line.
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
  text += "./run " + (chapter.is_capstone()
                          ? quoted(level.source.substr(0, level.source.find_last_of('/')))
                          : std::to_string(chapter.number));
  text += " --check --explain";
  if (chapter.ladders.size() > 1) text += " --ladder " + ladder.name;
  text += " --level " + level.name;
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

/// In place of GoogleTest's own output.
class LinePerFailure : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = fmt::format("{}.{}: ", test.test_suite_name(), test.name());
  }
  void OnTestEnd(const testing::TestInfo&) override { test_.clear(); }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    std::string text = part.message();
    if (text.rfind("Failed\n", 0) == 0) text.erase(0, 7);
    for (std::size_t at; (at = text.find('\n')) != std::string::npos;) text.replace(at, 1, " ");
    fmt::print("{}{}\n", test_, text);
  }
  std::string test_;  // GoogleTest holds its lock while it calls, and cannot be asked
};

/// Where `./run test` asks for it: a maintainer's tools read GoogleTest's own lines.
inline void print_line_per_failure() {
  if (!std::getenv("COOKBOOK_LINE_PER_FAILURE")) return;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new LinePerFailure);
}

}  // namespace cookbook
