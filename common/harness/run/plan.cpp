// SPDX-License-Identifier: MIT
#include "common/harness/run/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "common/backend/whole_number.hpp"
#include "common/harness/report/result.hpp"
#include "common/harness/verdict/host_code.hpp"

namespace cookbook {
namespace {

LadderRun make_run(const Ladder& ladder, const Options& options, Purpose purpose,
                   std::vector<int> levels, const Size* chosen) {
  const Size& usual = purpose == Purpose::trace ? ladder.trace_size : ladder.check_size;
  LadderRun run;
  run.ladder = &ladder;
  run.levels = std::move(levels);
  run.timed = purpose == Purpose::time;
  run.size = chosen ? *chosen : run.timed ? ladder.gpu_size : usual;
  run.checked_size = run.timed ? ladder.check_size : run.size;
  run.variant = parse_variant(ladder, options);
  if (const auto kind = kind_named(options.inputs)) run.inputs = *kind;
  run.isolation = isolation_at(ladder, options, run.checked_size, usual);
  return run;
}

/// A problem that does not support its size says whose size it is.
std::shared_ptr<AnyProblem> problem_at(const Ladder& ladder, const std::string& what,
                                       const Size& size, const Variant& variant) {
  try {
    return in_host_code(fmt::format("make(), {}", what),
                        [&] { return ladder.make_problem(size, variant); });
  } catch (const BadSize& error) {
    throw UsageError(fmt::format("{}: the problem {}", what, error.what()));
  }
}

}  // namespace

void require_sound(const Chapter& chapter) {
  for (const Ladder& ladder : chapter.ladders) {
    std::map<std::string, std::string> files;
    for (const LevelEntry& level : ladder.levels) {
      const std::string file = level.source.substr(level.source.rfind('/') + 1);
      const auto [other, is_new] = files.emplace(level.name, file);
      if (is_new) continue;
      throw UsageError(
          fmt::format("two levels of {} are called {}: {} and {}; .name must be the "
                      "file's, without its number",
                      ladder.name, level.name, other->second, file));
    }
    const auto check = [&](const char* field, const Size& size) {
      const std::string what =
          fmt::format("ladder.hpp: {} = {} of {}", field, size_text(size), ladder.name);
      if (size.size() != ladder.dims.size()) {
        throw UsageError(fmt::format("{}: it must have {}", what, fmt::join(ladder.dims, " x ")));
      }
      problem_at(ladder, what, size, {});
    };
    check("gpu_size", ladder.gpu_size);
    check("check_size", ladder.check_size);
    check("trace_size", ladder.trace_size);
    for (const Size& size : ladder.test_sizes) check("test_sizes", size);
  }
}

Isolation isolation_at(const Ladder& ladder, const Options& options, const Size& size,
                       const Size& usual) {
  Isolation isolation;
  isolation.in_process = options.in_process;
  const char* set = std::getenv("COOKBOOK_TIME_LIMIT");
  const auto from_environment = whole_number<std::uint64_t>(set ? set : "");
  if (options.time_limit) {
    isolation.seconds = *options.time_limit;
  } else if (from_environment) {
    isolation.seconds = *from_environment;
  } else if (size != usual) {
    const double ratio = work_of(ladder, size) / std::max(work_of(ladder, usual), 1.0);
    isolation.seconds = static_cast<std::uint64_t>(std::ceil(60 * std::clamp(ratio, 1.0, 10000.0)));
  }
  return isolation;
}

RunPlan make_plan(const Chapter& chapter, const Options& options, Purpose purpose) {
  const bool of_case =
      !options.inputs.empty() || !options.pitches.empty() || !options.bases.empty();
  const bool checks = options.check || options.explain;
  if (of_case && !checks && purpose != Purpose::trace) {
    throw UsageError(
        "--inputs, --pitch and --base say what --check or --explain runs: add one of them");
  }
  RunPlan plan;
  std::string no_level;
  std::map<std::string, std::string> refused;  // by size: why the first ladder does not support it
  std::set<std::string> taken;
  for (const Ladder* ladder : select_ladders(chapter, options)) {
    std::vector<int> levels;
    try {
      levels = select_levels(*ladder, options);
    } catch (const UsageError& error) {
      if (no_level.empty()) no_level = error.what();
      continue;
    }
    if (options.sizes.empty()) {
      plan.runs.push_back(make_run(*ladder, options, purpose, levels, nullptr));
    }
    for (const std::string& text : options.sizes) {
      try {
        const Size size = parse_size(*ladder, text, checks ? 0 : 1);
        const Variant variant = parse_variant(*ladder, options);
        require_memory(*problem_at(*ladder, "--size " + text, size, variant), size);
        plan.runs.push_back(make_run(*ladder, options, purpose, levels, &size));
        taken.insert(text);
      } catch (const std::exception& error) {
        refused.emplace(text, error.what());
        plan.left_out.push_back(
            fmt::format("ladder {} is not run at {}: {}", ladder->name, text, error.what()));
      }
    }
  }
  for (const auto& [text, why] : refused) {
    if (taken.count(text) == 0) throw UsageError(why);
  }
  if (plan.runs.empty()) throw UsageError(no_level);
  std::vector<Roof> roofs;
  for (const LadderRun& run : plan.runs) roofs.push_back(run.ladder->roof);
  for (LadderRun& run : plan.runs) run.roofs = needed_roofs(roofs);
  return plan;
}

}  // namespace cookbook
