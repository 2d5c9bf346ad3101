// SPDX-License-Identifier: MIT
// One file for the three kinds of executable: plain SIMT, traced SIMT (COOKBOOK_TRACED) and CUDA.
#include "common/harness/runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/harness/check.hpp"
#include "common/harness/claims_check.hpp"
#include "common/harness/console.hpp"
#include "common/harness/exercise.hpp"
#include "common/harness/options.hpp"
#include "common/harness/process.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/settings.hpp"
#endif
#if COOKBOOK_CUDA
#include "common/bench/bench.hpp"
#include "common/harness/statistics.hpp"
#include "common/roofline/roofs.hpp"
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

LevelResult describe(const LevelEntry& level, const AnyProblem& trace_problem) {
  LevelResult result;
  result.name = level.name;
  result.changed = level.changed;
  result.expect = level.expect;
  result.source_sha256 = source_hash(level.source);
  for (const Claim& claim : level.claims(trace_problem)) {
    ClaimResult open;
    open.claim = claim;
    result.claims.push_back(open);
  }
  return result;
}

LadderResult begin(const Chapter& chapter, const Ladder& ladder, const Options& options,
                   const Size& size) {
  LadderResult result;
  result.chapter = chapter.number;
  result.ladder = ladder.name;
  result.title = ladder.title;
  result.backend = kCuda ? "cuda" : kTraced ? "simt-traced" : "simt";
  result.commit = source_commit();
  result.date = now_utc();
  result.seed = options.seed;
  result.size = size;
  result.check_size = ladder.check_size;
  result.trace_size = ladder.trace_size;
  result.dims = ladder.dims;
  result.dtype = ladder.dtype;
  result.layout = ladder.layout;
  result.roof = ladder.roof;
  const auto problem = ladder.make_problem(size, {});
  require_memory(*problem, size);
  result.bytes = problem->bytes();
  result.flops = problem->flops();
  return result;
}

#if !COOKBOOK_TRACED
// Correctness of every selected level at one size, on ordinary inputs.
void check_levels(const Ladder& ladder, const std::vector<int>& levels, const Size& size,
                  const Options& options, LadderResult& result) {
  Progress progress;
  Instance instance(ladder, size, InputKind::normal, options.seed);
  double first_error = -1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const LevelEntry& level = ladder.levels[levels[i]];
    progress.show(fmt::format("checking {} at {} ({}/{})", level.name, size_text(size), i + 1,
                              levels.size()));
    const CheckResult check = check_level(level, instance);
    LevelResult& row = result.levels[i];
    row.status = status_name(check.status);
    row.reason = check.reason;
    row.max_error = check.max_error;
    row.error_bound = check.error_bound;
    if (check.status != CheckResult::Status::ok) continue;
    if (levels[i] == 0) first_error = check.max_error;
    if (ladder.gate_on_first_level && first_error >= 0 && check.max_error > 2 * first_error) {
      row.status = "mismatch";
      row.reason = fmt::format("error {:.3g} is more than twice the first level's {:.3g}",
                               check.max_error, first_error);
    }
  }
}

// Starts the traced executable for this ladder and takes over what it found.
void run_traced(const Chapter& chapter, const Ladder& ladder, const Options& options,
                LadderResult& result) {
  if (options.no_trace) return;
  const std::string program = traced_program(chapter.number);
  if (program.empty()) {
    fmt::print(stderr,
               "chapter-{}: mechanism claims are not checked: build the SIMT backend as well "
               "(make chapter-{} BACKEND=simt)\n",
               chapter.number, chapter.number);
    return;
  }
  Progress progress;
  progress.show(
      fmt::format("counting sectors, conflicts and races at {}", size_text(ladder.trace_size)));
  std::vector<std::string> arguments = {"--ladder", ladder.name, "--seed",
                                        std::to_string(options.seed)};
  for (const LevelResult& level : result.levels) {
    arguments.push_back("--level");
    arguments.push_back(level.name);
  }
  try {
    const auto document = nlohmann::json::parse(run_traced_json(program, arguments));
    progress.clear();
    merge_traced(result, document.at("runs").at(0));
  } catch (const std::exception& error) {  // what was timed is worth keeping
    progress.clear();
    result.trace_error = error.what();
    fmt::print(stderr, "chapter-{}: mechanism claims are not checked: {}\n", chapter.number,
               error.what());
  }
}

#endif

#if COOKBOOK_TRACED
LadderResult run_ladder(const Chapter& chapter, const Ladder& ladder, const Libraries&,
                        const Options& options, const Size* chosen_size) {
  const Size size = chosen_size ? *chosen_size : ladder.trace_size;
  LadderResult result = begin(chapter, ladder, options, size);
  result.trace_size = size;
  Instance instance(ladder, size, InputKind::normal, options.seed);
  for (int index : select_levels(ladder, options)) {
    const LevelEntry& level = ladder.levels[index];
    LevelResult row = describe(level, instance.problem());
    const TracedRun traced = trace_level(level, instance);
    row.status = status_name(traced.check.status);
    row.reason = traced.check.reason;
    row.max_error = traced.check.max_error;
    row.error_bound = traced.check.error_bound;
    row.counters = traced.counters;
    row.claims = traced.claims;
    row.findings = traced.findings;
    if (options.explain) {
      fmt::print("\n{} · {} at {}\n{}", ladder.name, level.name, size_text(size), traced.report);
    }
    result.levels.push_back(std::move(row));
  }
  return result;
}
#else

#if COOKBOOK_CUDA
void time_levels(const Ladder& ladder, const std::vector<int>& levels, const Libraries& libraries,
                 const Options& options, LadderResult& result) {
  Progress progress;
  auto show = [&progress](const std::string& text) { progress.show(text); };
  // Once before the first ladder; run() measures them again after the last one.
  static const Roofs roofs = measure_roofs(show);
  result.roofs = roofs;

  Instance instance(ladder, result.size, InputKind::normal, options.seed);
  std::vector<Contender> contenders;
  std::vector<int> row_of;                  // contender -> level row, or -1 - reference row
  std::vector<std::uint64_t> checked_hash;  // of each contender's right output
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const LevelEntry& level = ladder.levels[levels[i]];
    LevelResult& row = result.levels[i];
    if (row.status == "mismatch") continue;
    show(fmt::format("checking {} at {}", level.name, size_text(result.size)));
    const CheckResult check = check_level(level, instance, 1);
    row.status = status_name(check.status);
    row.reason = check.reason;
    if (check.status != CheckResult::Status::ok) continue;
    checked_hash.push_back(instance.output_hash());
    contenders.push_back({level.name, level.prepare(instance.problem(), instance.pointers())});
    row_of.push_back(static_cast<int>(i));
  }
  for (const auto& [ladder_name, library] : libraries) {
    if (ladder_name != ladder.name) continue;
    ReferenceResult row;
    row.name = library.name;
    show(fmt::format("checking {} at {}", library.name, size_text(result.size)));
    const CheckResult check = check_level(library, instance, 1);
    row.status = status_name(check.status);
    row.reason = check.reason;
    if (check.status == CheckResult::Status::ok) {
      contenders.push_back(
          {library.name, library.prepare(instance.problem(), instance.pointers())});
      row_of.push_back(-1 - static_cast<int>(result.references.size()));
      checked_hash.push_back(0);
    }
    result.references.push_back(std::move(row));
  }

  BenchOptions bench;
  bench.progress = show;
  const std::vector<Measurement> measured = measure(contenders, bench, &result.clocks);
  auto gbps = [&](const Timing& t) { return result.bytes / t.median * 1e-3; };
  auto tflops = [&](const Timing& t) { return result.flops / t.median * 1e-6; };
  const std::optional<double> roof = roof_value(*result.roofs, result.roof);
  int reference = -1;
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (row_of[c] < 0 && measured[c].error.empty() && reference < 0)
      reference = static_cast<int>(c);
  }
  int previous = -1;
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    const Measurement& m = measured[c];
    if (row_of[c] < 0) {
      ReferenceResult& row = result.references[-1 - row_of[c]];
      if (!m.error.empty()) {
        row.status = "skipped", row.reason = m.error;
        continue;
      }
      row.cold = m.cold, row.hot = m.hot;
      row.gbps = gbps(m.cold);
      if (result.flops > 0) row.tflops = tflops(m.cold);
      continue;
    }
    LevelResult& row = result.levels[row_of[c]];
    if (!m.error.empty()) {
      row.status = "mismatch", row.reason = m.error;
      continue;
    }
    row.cold = m.cold, row.hot = m.hot;
    row.gbps = gbps(m.cold);
    if (result.flops > 0) row.tflops = tflops(m.cold);
    if (roof)
      row.roof_fraction = (roof_is_bandwidth(result.roof) ? *row.gbps : *row.tflops) / *roof;
    // The level below in the ladder: not the last one that was selected, or could run.
    if (previous >= 0 && levels[row_of[previous]] + 1 == levels[row_of[c]]) {
      row.vs_previous = paired_ratio(measured[previous].cold_us, m.cold_us);
    }
    previous = static_cast<int>(c);
    if (reference >= 0) {
      row.vs_reference = paired_ratio(measured[reference].cold_us, m.cold_us);
      row.reference_name = contenders[reference].name;
    }
  }
  // Right after timing as well: a level that broke its output while hot is not fast, it is wrong.
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (row_of[c] < 0 || !measured[c].error.empty()) continue;
    LevelResult& row = result.levels[row_of[c]];
    show(fmt::format("checking {} after timing", row.name));
    const std::string wrong = check_again(contenders[c].run, instance, checked_hash[c]);
    if (wrong.empty()) continue;
    row.status = "mismatch";
    row.reason = "after timing: " + wrong;
  }
  progress.clear();
  if (!options.benchmark_arguments.empty()) {
    register_google_benchmark(
        fmt::format("chapter-{}/{}/{}", result.chapter, ladder.name, size_text(result.size)),
        contenders, measured, result.bytes, result.flops);
  }
}
#endif

LadderResult run_ladder(const Chapter& chapter, const Ladder& ladder, const Libraries& libraries,
                        const Options& options, const Size* chosen_size) {
  const bool timing = kCuda && !options.check;
  const Size size = chosen_size ? *chosen_size : timing ? ladder.gpu_size : ladder.check_size;
  const std::vector<int> levels = select_levels(ladder, options);
  LadderResult result = begin(chapter, ladder, options, size);
  const auto trace_problem = ladder.make_problem(ladder.trace_size, {});
  for (int level : levels) result.levels.push_back(describe(ladder.levels[level], *trace_problem));
  check_levels(ladder, levels, timing ? ladder.check_size : size, options, result);
#if COOKBOOK_CUDA
  if (timing) time_levels(ladder, levels, libraries, options, result);
#else
  (void)libraries;
#endif
  run_traced(chapter, ladder, options, result);
  // Speed claims are made for the ladder's own size; at any other they stay open.
  if (size == ladder.gpu_size) {
    for (LevelResult& row : result.levels) {
      for (ClaimResult& claim : row.claims) check_speed_claim(claim, row);
    }
  }
  return result;
}
#endif

int run(const Chapter& chapter, const Libraries& libraries, const Options& options) {
  const std::vector<const Ladder*> ladders = select_ladders(chapter, options);
  if (options.list) {
    for (const Ladder* ladder : ladders) print_list(*ladder);
    return 0;
  }
  if (!options.benchmark_arguments.empty() && !kCuda) {
    throw UsageError("--benchmark_* options need the CUDA backend: there is nothing to time here");
  }
#if COOKBOOK_CUDA
  if (!options.benchmark_arguments.empty()) {
    if (options.check)
      throw UsageError("--benchmark_* options say how to report times: not with --check");
    if (!take_google_benchmark_options(options.benchmark_arguments)) {
      throw UsageError(fmt::format("Google Benchmark does not know one of: {}",
                                   fmt::join(options.benchmark_arguments, " ")));
    }
  }
#endif
  if (options.exercise > 0) return grade_exercise(chapter, options);
  if (options.explain && !kTraced) {
    const std::string program = traced_program(chapter.number);
    if (program.empty()) {
      throw UsageError(fmt::format("--explain needs the SIMT backend: make chapter-{} BACKEND=simt",
                                   chapter.number));
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
    return run_program(arguments);
  }
  // Everything is parsed before anything runs. With several ladders, --level picks where it exists.
  // So does a size, but one that no ladder can take is a mistake.
  std::vector<std::pair<const Ladder*, std::optional<Size>>> runs;
  std::string no_level;
  std::map<std::string, std::string> refused;  // by size: why the first ladder refused it
  std::set<std::string> taken;
  for (const Ladder* ladder : ladders) {
    try {
      select_levels(*ladder, options);
    } catch (const UsageError& error) {
      if (no_level.empty()) no_level = error.what();
      continue;
    }
    if (options.sizes.empty()) runs.push_back({ladder, std::nullopt});
    for (const std::string& text : options.sizes) {
      try {
        const Size size = parse_size(*ladder, text);
        require_memory(*ladder->make_problem(size, {}), size);
        runs.push_back({ladder, size});
        taken.insert(text);
      } catch (const std::exception& error) {
        refused.emplace(text, error.what());
      }
    }
  }
  for (const auto& [text, why] : refused) {
    if (taken.count(text) == 0) throw UsageError(why);
  }
  if (runs.empty()) throw UsageError(no_level);
  require_writable(options.json);
  nlohmann::ordered_json document{{"schema", 1}, {"runs", nlohmann::ordered_json::array()}};
  auto save = [&] {
    if (!options.json.empty()) write_file(options.json, document.dump(1) + "\n");
  };
  bool all_right = true;
  for (const auto& [ladder, size] : runs) {
    const LadderResult result =
        run_ladder(chapter, *ladder, libraries, options, size ? &*size : nullptr);
    all_right = all_right && result.all_right();
    if (!kTraced) print_ladder(result);
    document["runs"].push_back(to_json(result));
    save();
    if (!kTraced && !result.all_right()) {
      for (const LevelResult& level : result.levels) {
        if (level.status == "mismatch") {
          fmt::print(stderr, "chapter {}: level {}: {}\n", chapter.number, level.name,
                     level.reason);
        }
      }
    }
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
  return all_right ? 0 : 1;
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
    fmt::print(stderr, "chapter-{}: {}\n", chapter.number, error.what());
    return 2;
  } catch (const BadSize& error) {
    fmt::print(stderr, "chapter-{}: {}\n", chapter.number, error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "chapter-{}: {}\n", chapter.number, error.what());
    return 1;
  }
}

}  // namespace cookbook
