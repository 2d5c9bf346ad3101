// SPDX-License-Identifier: MIT
// A pipeline: arguments become options (options.cpp) and these a plan (plan.cpp); the plan is
// executed (execute.cpp, timing.cpp), and the results are reported (console.cpp, result.cpp).
// Compiled for each kind of executable, as execute.cpp is.
#include "common/harness/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/harness/console.hpp"
#include "common/harness/execute.hpp"
#include "common/harness/exercise.hpp"
#include "common/harness/process.hpp"
#include "common/harness/timeline.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/settings.hpp"
#endif
#if COOKBOOK_CUDA
#include "common/bench/bench.hpp"
#include "common/harness/roofs.hpp"
#endif

namespace cookbook {
namespace {

#if COOKBOOK_CUDA
constexpr bool kCuda = true;
#else
constexpr bool kCuda = false;
#endif
#if COOKBOOK_TRACED
constexpr bool kTraced = true;
#else
constexpr bool kTraced = false;
#endif

void take_benchmark_options(const Options& options) {
  if (options.benchmark_arguments.empty()) return;
  if (!kCuda) {
    throw UsageError("--benchmark_* options need the CUDA backend: there is nothing to time here");
  }
#if COOKBOOK_CUDA
  if (options.check)
    throw UsageError("--benchmark_* options say how to report times: not with --check");
  if (!take_google_benchmark_options(options.benchmark_arguments)) {
    throw UsageError(fmt::format("Google Benchmark does not know one of: {}",
                                 fmt::join(options.benchmark_arguments, " ")));
  }
#endif
}

int explain(const Chapter& chapter, const Options& options) {
  const std::string program = traced_program(chapter.program());
  if (program.empty()) {
    throw UsageError(
        fmt::format("--explain needs the SIMT backend: make {} BACKEND=simt", chapter.program()));
  }
  std::vector<std::string> arguments = {program, "--explain", "--seed",
                                        std::to_string(options.seed)};
  auto add = [&arguments](const std::string& flag, const std::string& value) {
    if (value.empty()) return;
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  add("--ladder", options.ladder);
  add("--json", options.json);
  for (const std::string& level : options.levels) add("--level", level);
  for (const std::string& size : options.sizes) add("--size", size);
  add_isolation(options, arguments);
  return run_program(arguments);
}

int run(const Chapter& chapter, const Libraries& libraries, const Options& options) {
  if (options.list) {
    for (const Ladder* ladder : select_ladders(chapter, options)) print_list(*ladder);
    return 0;
  }
  take_benchmark_options(options);
  if (options.describe) {
    describe_exercise(chapter, options);
    return 0;
  }
  if (options.exercise > 0) return grade_exercise(chapter, options);
  if (!options.timeline.empty()) return record_timeline(chapter, options);
  // With --check, the check comes first: it is at another size, and its mismatches are kept.
  const bool checks_too = options.check && options.explain && !kTraced;
  if (options.explain && !kTraced && !checks_too) return explain(chapter, options);
  const Plan plan = make_plan(chapter, options,
                              kTraced                   ? Purpose::trace
                              : kCuda && !options.check ? Purpose::time
                                                        : Purpose::check);
  require_writable(options.json);
  for (const std::string& line : plan.left_out) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), line);
  }
  nlohmann::ordered_json document{{"schema", 1}, {"runs", nlohmann::ordered_json::array()}};
  auto save = [&] {
    if (!options.json.empty()) write_file(options.json, document.dump(1) + "\n");
  };
  // Every ladder is run, checked and recorded. Unless asked for, only the first fills the screen.
  const bool tables = options.all || !options.ladder.empty();
  const Ladder* first = plan.runs.front().ladder;
  bool others = false;
  int status = 0;
  for (const LadderRun& planned : plan.runs) {
    const LadderResult result = execute(chapter, planned, libraries, options);
    status = std::max(status, result.exit_status());
    if (!kTraced && (tables || planned.ladder == first)) {
      print_ladder(result);
    } else if (!kTraced) {
      if (!others) {
        fmt::print("\nOther ladders{}. --all prints their tables, --ladder NAME one of them.\n",
                   kCuda ? ", with their highest speed (% of roof)" : "");
      }
      others = true;
      print_summary(result);
    }
    document["runs"].push_back(to_json(result));
    save();
    if (!kTraced || options.explain) print_failures(result);
    if (result.device_lost) {
      fmt::print(stderr, "{}: the GPU cannot be used any more; nothing else is run\n",
                 chapter.program());
      return status;
    }
  }
  if (checks_too) {
    Options counts = options;
    counts.json.clear();  // the check has written it
    return std::max(status, explain(chapter, counts));
  }
#if COOKBOOK_CUDA
  if (!options.check) {
    Progress progress;
    const auto after =
        roofs_json(measure_roofs([&](const std::string& text) { progress.show(text); }));
    for (auto& run : document["runs"]) run["roofs_after"] = after;
    save();
    progress.clear();
    if (!options.benchmark_arguments.empty()) report_google_benchmark();
  }
#endif
  return status;
}

}  // namespace

int run_chapter(const Chapter& chapter, const Libraries& libraries, int argc, char** argv) {
  Options options;
  if (const auto status = parse_options(chapter, argc, argv, options)) return *status;
  try {
#if COOKBOOK_SIMT
    try {
      simt::check_environment();
    } catch (const std::exception& error) {
      throw UsageError(error.what());
    }
#endif
    return run(chapter, libraries, options);
  } catch (const UsageError& error) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), error.what());
    return 2;
  } catch (const BadSize& error) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), error.what());
    return 1;
  }
}

}  // namespace cookbook
