// SPDX-License-Identifier: MIT
#include "common/harness/exercise.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/harness/process.hpp"

namespace cookbook {

int grade_exercise(const Chapter& chapter, const Options& options) {
  const int count = static_cast<int>(chapter.exercises.size());
  if (options.exercise > count) {
    throw UsageError(count == 0 ? "this chapter has no graded exercise"
                                : fmt::format("this chapter has exercises 1 to {}", count));
  }
  const LevelEntry& level = chapter.exercises[options.exercise - 1];
  const Ladder* ladder = &chapter.ladders.front();
  for (const Ladder& other : chapter.ladders) {
    if (other.name == level.ladder) ladder = &other;
  }
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  bool passed = true;
  auto note = [&](const std::string& what, bool ok, const std::string& why) {
    passed = passed && ok;
    checks.push_back({{"check", what},
                      {"passed", ok},
                      {"reason", why.empty() ? nullptr : nlohmann::ordered_json(why)}});
    fmt::print("  {}  {}{}\n", ok ? "pass" : "FAIL", what, why.empty() ? "" : ": " + why);
  };
#if COOKBOOK_TRACED
  Instance instance(*ladder, ladder->trace_size, InputKind::normal, options.seed);
  const TracedRun traced = trace_level(level, instance);
  note("right under the tracer", traced.check.status == CheckResult::Status::ok,
       traced.check.reason);
  for (const std::string& finding : traced.findings) note("no finding", false, finding);
  for (const ClaimResult& claim : traced.claims) {
    if (!claim.holds) continue;
    note(claim.claim.text, *claim.holds, *claim.holds ? "" : "measured " + claim.measured);
  }
#else
  fmt::print("Exercise {}.{} · {}\n", chapter.number, options.exercise, level.changed);
  for (const Size& size : ladder->test_sizes) {
    for (const InputKind kind : {InputKind::integers, InputKind::normal, InputKind::one_nan}) {
      Instance instance(*ladder, size, kind, options.seed);
      const CheckResult check = check_level(level, instance);
      if (check.status == CheckResult::Status::ok && kind != InputKind::one_nan) continue;
      note(fmt::format("{}, {} inputs", size_text(size), input_kind_name(kind)),
           check.status == CheckResult::Status::ok, check.reason);
    }
  }
  if (const std::string program = traced_program(chapter.number); !program.empty()) {
    // The traced grader prints its own lines.
    const auto traced = nlohmann::ordered_json::parse(run_traced_json(
        program,
        {"--exercise", std::to_string(options.exercise), "--seed", std::to_string(options.seed)}));
    passed = passed && traced.at("passed").get<bool>();
    for (const auto& check : traced.at("checks")) checks.push_back(check);
  }
#endif
#if !COOKBOOK_TRACED
  const std::string verdict = fmt::format("exercise {}.{}: {}", chapter.number, options.exercise,
                                          passed ? "passed" : "not yet");
  fmt::print("{}\n", verdict);
#endif
  if (!options.json.empty()) {
    std::ofstream(options.json) << nlohmann::ordered_json{{"schema", 1},
                                                          {"exercise",
                                                           fmt::format("{}.{}", chapter.number,
                                                                       options.exercise)},
                                                          {"name", level.name},
                                                          {"passed", passed},
                                                          {"checks", checks}}
                                       .dump(1)
                                << "\n";
  }
  return passed ? 0 : 1;
}

}  // namespace cookbook
