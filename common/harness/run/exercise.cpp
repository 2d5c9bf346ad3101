// SPDX-License-Identifier: MIT
#include "common/harness/run/commands.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/harness/run/plan.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/run/traced.hpp"
#include "common/harness/verdict/acceptance.hpp"

namespace cookbook {
namespace {

// After this number of failures nobody reads on. The tracer, which names lines, still runs.
[[maybe_unused]] constexpr int kEnoughFailures = 12;

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
  const nlohmann::ordered_json document{{"file", level.source},
                                        {"title", level.changed},
                                        {"ladder", ladder.name},
                                        {"dims", ladder.dims},
                                        {"test_sizes", ladder.test_sizes},
                                        {"trace_size", ladder.trace_size},
                                        {"capability", chapter.model_capability}};
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
  auto note = [&](const std::string& what, const CheckResult& check) {
    const bool ok = check.fault == Fault::none;
    right = right && ok;
    checks.push_back({{"check", what},
                      {"passed", ok},
                      {"fault", fault_name(check.fault)},
                      {"reason", ok ? nullptr : nlohmann::ordered_json(check.text())}});
    fmt::print("  {}  {}{}\n", ok ? "pass" : "FAIL", what, ok ? "" : ": " + check.text());
  };
  const AcceptanceScope scope = scope_of(*ladder, {options.seed});
#if COOKBOOK_TRACED
  for (const Axis axis : {Axis::traced, Axis::odd_layout}) {
    for (const AcceptanceRun& run : acceptance_runs(Judge::exercise, axis, *ladder, scope)) {
      if (run.schedule) set_schedule(*run.schedule, options.seed);
      Instance instance = instance_of(run, *ladder);
      const TracedRun traced = trace_level(
          level, instance, isolation_at(*ladder, options, run.size, ladder->trace_size));
      if (axis == Axis::odd_layout && traced.check.fault == Fault::unsupported) continue;
      note("right under the tracer at " + run.text(), traced.check);
      for (const FoundFault& found : traced.findings) {
        const bool race = found.fault == Fault::race;
        note("the tracer finds no fault at " + run.text(),
             {found.fault,
              found.message +
                  (race ? " (no barrier orders these two accesses to the same bytes)" : "")});
      }
      if (axis != Axis::traced) continue;  // claims are about the traced size
      for (const ClaimResult& claim : traced.claims) {
        if (claim.claim.is_mechanism()) note(claim.claim.text, check_of(claim));
      }
    }
  }
#else
  fmt::print("Exercise {} · {}\n  in {}\n", chapter.exercise_text(options.exercise), level.changed,
             short_path(level.source));
  AcceptanceScope chosen = scope;
  chosen.sizes = sizes;
  int wrong = 0;
  bool hung = false;  // each further try would take the time limit
  for (const Axis axis : {Axis::shapes, Axis::inputs, Axis::layouts, Axis::schedules}) {
    for (const AcceptanceRun& run :
         acceptance_runs(Judge::exercise, axis, *ladder, axis == Axis::shapes ? chosen : scope)) {
      if (wrong >= kEnoughFailures || hung) break;
      // The environment may have chosen any schedule for what comes before.
      if (run.schedule) set_schedule(*run.schedule, options.seed);
      Instance instance = instance_of(run, *ladder);
      const CheckResult check = check_level(
          level, instance, run.draws, isolation_at(*ladder, options, run.size, ladder->trace_size));
      hung = check.fault == Fault::hang;
      // TMA does not support every layout, and supports() says so. Every size must be supported.
      if (check.fault == Fault::unsupported && axis == Axis::layouts) continue;
      const bool ok = check.fault == Fault::none;
      wrong += !ok;
      if (!ok || axis == Axis::shapes) note(run.text(), check);  // a line per size is enough
    }
  }
  const std::string program = traced_program(chapter.program());
  complete = options.sizes.empty() && !program.empty() && !hung;
  if (!program.empty() && !hung) {
    // The traced grader prints its own lines.
    Options request = options;
    request.sizes.clear();
    request.benchmark_arguments.clear();
    const auto traced = run_for_json(program, request);
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
