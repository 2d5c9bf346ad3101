// SPDX-License-Identifier: MIT
#include "common/harness/exercise.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/harness/check.hpp"
#include "common/harness/plan.hpp"
#include "common/harness/process.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/launch.hpp"
#endif

namespace cookbook {
namespace {

// Rows and bases that start anywhere: where 8- and 16-byte accesses go wrong.
constexpr const char* kOddText = ", rows and bases that start anywhere";

// After this number of failures nobody reads on. The tracer, which names lines, still runs.
[[maybe_unused]] constexpr int kEnoughFailures = 12;

// Findings of a traced run: races, uninitialised reads, accesses out of bounds ...
[[maybe_unused]] constexpr const char* kNoFault = "the tracer finds no fault";

[[maybe_unused]] std::string explain(const std::string& finding) {
  const bool race = finding.rfind("race: ", 0) == 0;
  return finding + (race ? " (no barrier orders these two accesses to the same bytes)" : "");
}

std::string why(const CheckResult& check) {
  const bool ended =
      check.status == CheckResult::Status::crashed || check.status == CheckResult::Status::hung;
  return ended ? fmt::format("{}: {}", status_name(check.status), check.reason) : check.reason;
}

// Where layouts are tried: the largest test size that takes a quarter of the traced size's work.
Size layout_size(const Ladder& ladder) {
  const double limit = work_of(ladder, ladder.trace_size) / 4;
  Size chosen = ladder.trace_size;
  double largest = 0;
  for (const Size& size : ladder.test_sizes) {
    const double cost = work_of(ladder, size);
    if (cost <= limit && cost > largest) chosen = size, largest = cost;
  }
  return chosen;
}

const Ladder& ladder_of(const Chapter& chapter, const LevelEntry& exercise) {
  for (const Ladder& ladder : chapter.ladders) {
    if (ladder.name == exercise.ladder) return ladder;
  }
  return chapter.ladders.front();
}

}  // namespace

void describe_exercise(const Chapter& chapter, const Options& options) {
  const LevelEntry& level = chapter.exercises[options.exercise - 1];
  const Ladder& ladder = ladder_of(chapter, level);
  const nlohmann::ordered_json document{
      {"file", level.source}, {"title", level.changed},          {"ladder", ladder.name},
      {"dims", ladder.dims},  {"test_sizes", ladder.test_sizes}, {"trace_size", ladder.trace_size}};
  fmt::print("{}\n", document.dump(1));
}

int grade_exercise(const Chapter& chapter, const Options& options) {
  const LevelEntry& level = chapter.exercises[options.exercise - 1];
  const Ladder* ladder = &ladder_of(chapter, level);
  // Everything is parsed before anything runs.
  std::vector<Size> sizes = ladder->test_sizes;
  if (!options.sizes.empty()) {
    sizes.clear();
    for (const std::string& text : options.sizes) {
      sizes.push_back(parse_size(*ladder, text));
      require_memory(*ladder->make_problem(sizes.back(), {}), sizes.back());
    }
  }
  require_writable(options.json);
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  bool right = true;
  // A grade needs every size and the tracer; with less, it may miss what the exercise is about.
  bool complete = false;
  auto note = [&](const std::string& what, bool ok, const std::string& why) {
    right = right && ok;
    checks.push_back({{"check", what},
                      {"passed", ok},
                      {"reason", why.empty() ? nullptr : nlohmann::ordered_json(why)}});
    fmt::print("  {}  {}{}\n", ok ? "pass" : "FAIL", what, why.empty() ? "" : ": " + why);
  };
  [[maybe_unused]] const Isolation isolation =
      isolation_at(*ladder, options, ladder->trace_size, ladder->trace_size);
#if COOKBOOK_TRACED
  Instance instance(*ladder, ladder->trace_size, InputKind::normal, options.seed);
  const TracedRun traced = trace_level(level, instance, isolation);
  note("right under the tracer", traced.check.status == CheckResult::Status::ok, why(traced.check));
  for (const std::string& finding : traced.findings) note(kNoFault, false, explain(finding));
  for (const ClaimResult& claim : traced.claims) {
    if (!claim.claim.is_mechanism()) continue;  // speed is not graded
    const bool holds = claim.holds.value_or(false);
    note(claim.claim.text, holds,
         holds         ? ""
         : claim.holds ? "measured " + claim.measured
                       : "was not checked");
  }
  simt::set_start_order(simt::StartOrder::reverse);  // what waits for an earlier block hangs
  Instance odd(*ladder, layout_size(*ladder), InputKind::normal, options.seed,
               {kOddLayout.extra_pitch, kOddLayout.misalign_elements});
  const TracedRun traced_odd = trace_level(level, odd, isolation);
  if (traced_odd.check.status != CheckResult::Status::skipped) {
    note(std::string("right under the tracer") + kOddText,
         traced_odd.check.status == CheckResult::Status::ok, why(traced_odd.check));
    for (const std::string& finding : traced_odd.findings) {
      note(kNoFault + std::string(kOddText), false, explain(finding));
    }
  }
#else
  fmt::print("Exercise {} · {}\n", chapter.exercise_text(options.exercise), level.changed);
  int wrong = 0;
  bool hung = false;  // each further try would take the time limit
  auto grade = [&](const Size& size, InputKind kind, const Variant& variant, const char* what,
                   int repeats) {
    if (wrong >= kEnoughFailures || hung) return;
    Instance instance(*ladder, size, kind, options.seed, variant);
    const CheckResult check = check_level(level, instance, instance.drawn(repeats),
                                          isolation_at(*ladder, options, size, ladder->trace_size));
    hung = check.status == CheckResult::Status::hung;
    const bool odd_layout = variant.extra_pitch != 0 || variant.misalign_elements != 0;
    // TMA does not support every layout, and supports() says so. Every size must be supported.
    if (check.status == CheckResult::Status::skipped && odd_layout) return;
    const bool ok = check.status == CheckResult::Status::ok;
    wrong += !ok;
    if (ok && (kind != InputKind::normal || odd_layout)) return;  // one line per size is enough
    note(fmt::format("{}, {} inputs{}", size_text(size), input_kind_name(kind), what), ok,
         why(check));
  };
  for (const Size& size : sizes) {
    grade(size, InputKind::integers, {}, "", 2);
    grade(size, InputKind::normal, {}, "", 1);
  }
  const Size& size = ladder->trace_size;
  for (const InputKind kind : all_input_kinds()) grade(size, kind, {}, "", 1);
  for (const Variant& variant : graded_layouts()) {
    grade(layout_size(*ladder), InputKind::normal, variant, kOddText, 1);
  }
#if COOKBOOK_SIMT
  // All three, since the environment may have chosen any of them for what is above.
  const char* const schedules[] = {", asynchronous copies late, blocks in order",
                                   ", asynchronous copies early, blocks in reverse order",
                                   ", asynchronous copies and blocks in random order"};
  for (const int schedule : {0, 1, 2}) {
    simt::set_async_schedule(static_cast<simt::AsyncSchedule>(schedule), options.seed);
    simt::set_start_order(static_cast<simt::StartOrder>(schedule), options.seed);
    grade(size, InputKind::integers, {}, schedules[schedule], 1);
  }
#endif
  const std::string program = traced_program(chapter.program());
  complete = options.sizes.empty() && !program.empty() && !hung;
  if (!program.empty() && !hung) {
    // The traced grader prints its own lines.
    std::vector<std::string> arguments = {"--exercise", std::to_string(options.exercise), "--seed",
                                          std::to_string(options.seed)};
    add_isolation(options, arguments);
    const auto traced = nlohmann::ordered_json::parse(run_traced_json(program, arguments));
    for (const auto& check : traced.at("checks")) {
      right = right && check.at("passed").get<bool>();
      checks.push_back(check);
    }
  }
  const std::string verdict = !right     ? "not yet"
                              : complete ? "passed"
                              : !options.sizes.empty()
                                  ? "right at these sizes; run without --size for the grade"
                                  : fmt::format(
                                        "right without the tracer; build {}-traced for the "
                                        "grade",
                                        chapter.program());
  fmt::print("exercise {}: {}\n", chapter.exercise_text(options.exercise), verdict);
#endif
  const bool passed = right && complete;
  if (!options.json.empty()) {
    const nlohmann::ordered_json document{
        {"schema", 1},          {"exercise", chapter.exercise_text(options.exercise)},
        {"name", level.name},   {"passed", passed},
        {"complete", complete}, {"checks", checks}};
    write_file(options.json, document.dump(1) + "\n");
  }
  return passed ? 0 : 1;
}

}  // namespace cookbook
