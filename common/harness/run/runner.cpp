// SPDX-License-Identifier: MIT
// A pipeline: arguments become options (options.cpp) and these a plan (plan.cpp); the plan is
// executed (execute.cpp, timing.cpp), and the results are reported (console.cpp, result.cpp).
// Compiled for each kind of executable, as execute.cpp is.
#include "common/harness/run/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/harness/report/console.hpp"
#include "common/harness/run/commands.hpp"
#include "common/harness/run/entry.hpp"
#include "common/harness/run/execute.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/verdict/isolate.hpp"
#if COOKBOOK_TRACED
#include "common/harness/run/requests.hpp"
#endif
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#endif
#if COOKBOOK_CUDA
#include "common/bench/bench.hpp"
#include "common/harness/run/roofs.hpp"
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

void take_timing_options(const Options& options) {
  if (options.seconds && (!kCuda || options.check)) {
    throw UsageError("--seconds needs the CUDA backend, and no --check: nothing is timed here");
  }
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
  Options request = options;
  request.explain = true;
  request.check = false;
  request.seconds.reset();  // nothing is timed there
  request.benchmark_arguments.clear();
  return run_request(program, request);
}

#if COOKBOOK_CUDA
/// Completes a file of results with what this program's machine code is known by. Without Python
/// the levels stay known by their tokens.
void enter_machine_code(const std::string& json) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  try {
    run_program(
        {"python3", "-B", source_path("tools/identity/identity.py"), "enter", json, program});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: its machine code is not entered: {}\n", json, error.what());
  }
}
#endif

/// What the runs found, on the screen and in the file of --json.
class Report {
 public:
  /// Unless all tables are asked for, only the first ladder's fills the screen.
  Report(const Options& options, const RunPlan& plan)
      : options_(options),
        first_(plan.runs.front().ladder->name),
        roofs_(plan.runs.front().roofs),
        tables_(options.all || !options.ladder.empty()) {}

  /// Prints what the run of a ladder found, and returns it for add(), which another process may
  /// call. The run is a text: only so it keeps the order of its keys.
  nlohmann::json print(const LadderResult& result) {
    if (!kTraced && (tables_ || result.ladder == first_)) {
      print_ladder(result);
    } else if (!kTraced) {
      if (!others_) {
        fmt::print("\nOther ladders{}. --all prints their tables, --ladder NAME one of them.\n",
                   kCuda ? ", with their highest speed (% of roof)" : "");
      }
      others_ = true;
      print_summary(result);
    }
    if (!kTraced || options_.explain) print_failures(result);
    return {{"run", to_json(result).dump()},
            {"status", result.exit_status()},
            {"others", others_},
            {"device_lost", result.device_lost}};
  }

  void add(const nlohmann::json& printed) {
    status_ = std::max(status_, printed.at("status").get<int>());
    others_ = printed.at("others").get<bool>();
    document_["runs"].push_back(
        nlohmann::ordered_json::parse(printed.at("run").get_ref<const std::string&>()));
    save();
  }

  /// Of a ladder that host code ended, nothing else is known.
  void add_crash(const std::string& line) {
    status_ = 3;
    fmt::print(stderr, "{}\n", line);
  }

#if COOKBOOK_CUDA
  /// The roofs once more after the last ladder, and what Google Benchmark reports.
  void end() {
    if (options_.check) return;
    Progress progress;
    const auto after =
        roofs_json(measure_roofs([&](const std::string& text) { progress.show(text); }, roofs_));
    for (auto& run : document_["runs"]) run["roofs_after"] = after;
    save();
    progress.clear();
    if (!options_.json.empty()) enter_machine_code(options_.json);
    if (!options_.benchmark_arguments.empty()) report_google_benchmark();
  }
#else
  void end() {}
#endif

  int status() const { return status_; }

 private:
  void save() const {
    if (!options_.json.empty()) write_file(options_.json, document_.dump(1) + "\n");
  }

  const Options& options_;
  const std::string first_;
  const std::vector<Roof> roofs_;
  const bool tables_;
  bool others_ = false;
  int status_ = 0;
  nlohmann::ordered_json document_{{"schema", 1}, {"runs", nlohmann::ordered_json::array()}};
};

/// What a command line may ask for in place of runs of ladders: its exit status.
std::optional<int> do_otherwise(const Chapter& chapter, const Options& options) {
  if (options.list) {
    for (const Ladder* ladder : select_ladders(chapter, options)) print_list(*ladder);
    return 0;
  }
  take_timing_options(options);
  if (options.describe) {
    describe_exercise(chapter, options);
    return 0;
  }
  if (options.explain && !kTraced && !options.check) return explain(chapter, options);
  return std::nullopt;
}

/// Whether the device can run any level of the plan.
bool any_is_supported(const RunPlan& plan) {
  return std::any_of(plan.runs.begin(), plan.runs.end(), [](const LadderRun& run) {
    const auto problem = run.ladder->make_problem(run.checked_size, run.variant);
    return std::any_of(run.levels.begin(), run.levels.end(), [&](int level) {
      return run.ladder->levels[static_cast<size_t>(level)].supports(*problem, device_info()).ok;
    });
  });
}

/// Runs a ladder: whether the next one can run. On the SIMT backend in a process of its own, so
/// that host code which crashes ends this ladder only.
bool run_ladder(const Chapter& chapter, const LadderRun& run,
                const std::function<LadderResult()>& execute, Report& report) {
  const auto work = [&]() -> nlohmann::json {
    try {
      return report.print(execute());
    } catch (const UsageError& error) {  // another process would not know its type
      return {{"usage", error.what()}};
    } catch (const FaultError& error) {
      if (error.fault() != Fault::host_crash) throw;
      return {{"crash", error.what()}};
    }
  };
  nlohmann::json printed;
  const Outcome outcome = run_isolated({run.isolation.in_process, 0}, work, printed);
  if (outcome.fault == Fault::none && printed.contains("usage")) {
    throw UsageError(printed.at("usage").get<std::string>());
  }
  if (outcome.fault != Fault::none || printed.contains("crash")) {
    report.add_crash(fmt::format(
        "{}: ladder {} at {}: crashed: {}", chapter.heading(), run.ladder->name,
        size_text(run.checked_size),
        outcome.fault != Fault::none ? outcome.reason : printed.at("crash").get<std::string>()));
    return true;
  }
  report.add(printed);
  return !printed.at("device_lost").get<bool>();
}

}  // namespace

int run_chapter(const Chapter& chapter, int argc, char** argv, const Libraries& libraries) {
  Options options;
  if (const auto status = parse_options(chapter, argc, argv, options)) return *status;
#if COOKBOOK_SIMT
  simt::set_model_capability(chapter.model_capability);
  // Before a problem is made: no launch has installed it yet.
  options.in_process ? simt::install_crash_handler() : simt::report_host_crashes();
  if (options.in_process) simt::set_time_limit(0);
#endif
  try {
    if (chapter.is_capstone()) require_sound(chapter);  // the tests see to it in a chapter
    if (const auto status = do_otherwise(chapter, options)) return *status;
    if (options.exercise > 0) return grade_exercise(chapter, options);
    if (!options.launches.empty()) return list_launches(chapter, options);
    if (options.profile) return profile_levels(chapter, options);
    if (!options.timeline.empty()) return record_timeline(chapter, options);
    const RunPlan plan = make_plan(chapter, options,
                                   kTraced                   ? Purpose::trace
                                   : kCuda && !options.check ? Purpose::time
                                                             : Purpose::check);
    require_writable(options.json);
#if COOKBOOK_TRACED
    if (!options.draw.empty()) {
      if (options.sizes.size() > 1) throw UsageError("--draw draws one size");
      const Ladder& first = *plan.runs.front().ladder;
      require_writable(requests_file(options.draw, first.name, first.levels[0].name));
    }
#endif
    for (const std::string& file : kTraced ? std::vector<std::string>{} : unlisted_files(chapter)) {
      fmt::print(stderr, "{}: {} is not run: ladder.hpp lists no level of it in rows<...>()\n",
                 chapter.program(), file);
    }
    const int cc = chapter.model_capability;
    if (!kTraced && cc > 0 && device_info().cc_major != cc / 10 && !any_is_supported(plan)) {
      fmt::print(stderr,
                 "{}: its levels need compute capability {}.x, and this is the {}; on the CPU, "
                 "BACKEND=simt ./run {} runs them all\n",
                 chapter.program(), cc / 10, device_info().name, chapter.number);
    }
    for (const std::string& line : plan.left_out) {
      fmt::print(stderr, "{}: {}\n", chapter.program(), line);
    }
    Report report(options, plan);
    for (const LadderRun& run : plan.runs) {
      const auto result = [&] { return execute(chapter, run, libraries, options); };
      if (!run_ladder(chapter, run, result, report)) {
        fmt::print(stderr, "{}: the GPU cannot be used any more; nothing else is run\n",
                   chapter.program());
        return report.status();
      }
    }
    if (options.check && options.explain && !kTraced) {
      options.json.clear();  // the check, which is at another size, has written it
      return std::max(report.status(), explain(chapter, options));
    }
    report.end();
    return report.status();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), error.what());
    const bool usage = dynamic_cast<const UsageError*>(&error) != nullptr ||
                       dynamic_cast<const BadSize*>(&error) != nullptr;
    return usage ? 2 : 1;
  }
}

int run_chapter(Chapter (*chapter)(), int argc, char** argv) {
  return run_chapter(chapter(), argc, argv, Libraries());
}

}  // namespace cookbook
