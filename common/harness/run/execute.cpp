// SPDX-License-Identifier: MIT
#include "common/harness/run/execute.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/harness/contract/tokens.hpp"
#include "common/harness/report/console.hpp"
#include "common/harness/report/rates.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/run/traced.hpp"
#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/host_code.hpp"
#if COOKBOOK_TRACED
#include "common/harness/run/requests.hpp"
#endif

namespace cookbook {
namespace {

#if COOKBOOK_TRACED
constexpr const char* kBackend = "simt-traced";
#elif COOKBOOK_CUDA
constexpr const char* kBackend = "cuda";
#else
constexpr const char* kBackend = "simt";
#endif

std::shared_ptr<AnyProblem> problem_of(const Ladder& ladder, const Size& size,
                                       const Variant& variant = {}) {
  return in_host_code("make()", [&] { return ladder.make_problem(size, variant); });
}

/// Of the levels whose supports() or claims() ends its process or throws: how. All are asked at
/// once, and one by one only where that fails.
std::map<int, CheckResult> crashes_of(const LadderRun& run) {
  const Ladder& ladder = *run.ladder;
  const auto problem = problem_of(ladder, run.checked_size, run.variant);
  const auto trace_problem = problem_of(ladder, ladder.trace_size);
  const auto ask = [&](const std::vector<int>& levels) -> CheckResult {
    const auto work = [&]() -> nlohmann::json {
      for (const int index : levels) {
        const LevelEntry& level = ladder.levels[static_cast<std::size_t>(index)];
        in_host_code("supports()", [&] { return level.supports(*problem, device_info()); });
        in_host_code("claims()", [&] { return level.claims(*trace_problem); });
      }
      return CheckResult();
    };
    nlohmann::json answer;
    try {
      const Outcome outcome = run_isolated(run.isolation, work, answer);
      return check_of(outcome, answer);
    } catch (const std::exception& error) {
      return {Fault::host_crash, error.what()};
    }
  };
  std::map<int, CheckResult> crashes;
  if (ask(run.levels).fault == Fault::none) return crashes;
  for (const int index : run.levels) {
    const CheckResult asked = ask({index});
    if (asked.fault != Fault::none) crashes[index] = asked;
  }
  return crashes;
}

/// Of a level that has crashed `trace_problem` is null: its claims are not asked for again.
LevelResult describe(const LevelEntry& level, const AnyProblem* trace_problem) {
  LevelResult result;
  result.name = level.name;
  result.changed = level.changed;
  result.expect = level.expect;
  result.tokens = token_hash(level.source);
  if (!trace_problem) return result;
  for (const Claim& claim : level.claims(*trace_problem)) {
    result.claims.emplace_back().claim = claim;  // open
  }
  return result;
}

LadderResult begin(const Chapter& chapter, const LadderRun& run, const Options& options) {
  const Ladder& ladder = *run.ladder;
  const Size& size = run.size;
  LadderResult result;
  result.chapter = chapter.number;
  result.capstone = chapter.capstone;
  result.program = chapter.program();
  result.heading = chapter.heading();
  result.ladder = ladder.name;
  result.title = ladder.title;
  result.backend = kBackend;
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
  const auto problem = problem_of(ladder, size);
  const auto trace_problem = problem_of(ladder, ladder.trace_size);
  {
    const HostCode noted("tensors()");
    require_memory(*problem, size);
  }
  in_host_code("bytes() or flops()", [&] {
    result.bytes = problem->bytes();
    result.flops = problem->flops();
    result.trace_bytes = trace_problem->bytes();
  });
  if (ladder.roof == Roof::own) {
    const OwnOperations& own = ladder.operations;
    result.operation = own.name;
    const double most = own.per_second ? own.per_second(device_info()) : 0;
    if (most > 0) result.own_gops = most * 1e-9;
  }
  return result;
}

#if !COOKBOOK_TRACED
#if COOKBOOK_CUDA
// After some errors of a kernel a process can no longer use the GPU.
bool device_is_lost() {
  try {
    synchronize();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}
#else
bool device_is_lost() { return false; }
#endif

// Starts the traced executable for this ladder and takes over what it found.
void run_traced(const Chapter& chapter, const Ladder& ladder, const Options& options,
                LadderResult& result) {
  if (options.no_trace) return;
  const std::string program = traced_program(chapter.program());
  if (program.empty()) {
    fmt::print(stderr,
               "{}: mechanism claims are not checked: build the SIMT backend as well "
               "(make {} BACKEND=simt)\n",
               chapter.program(), chapter.program());
    return;
  }
  Progress progress;
  progress.show(
      fmt::format("counting sectors, conflicts and races at {}", size_text(ladder.trace_size)));
  Options request;
  request.ladder = ladder.name;
  request.seed = options.seed;
  request.in_process = options.in_process;
  request.time_limit = options.time_limit;
  for (const LevelResult& level : result.levels) {
    // It would hang again, and take its time for it, or crash again before its kernel.
    if (level.check.fault == Fault::hang || level.check.fault == Fault::host_crash) continue;
    request.levels.push_back(level.name);
  }
  if (request.levels.empty()) return;
  try {
    const nlohmann::json document = run_for_json(program, request);
    progress.clear();
    merge_traced(result, document.at("runs").at(0));
  } catch (const std::exception& error) {  // times that were measured are kept
    progress.clear();
    result.trace_error = error.what();
    fmt::print(stderr, "{}: mechanism claims are not checked: {}\n", chapter.program(),
               error.what());
  }
}
#endif

}  // namespace

#if COOKBOOK_TRACED
LadderResult execute(const Chapter& chapter, const LadderRun& run, const Libraries&,
                     const Options& options) {
  const Ladder& ladder = *run.ladder;
  LadderResult result = begin(chapter, run, options);
  result.trace_size = run.size;
  result.trace_bytes = result.bytes;
  const std::map<int, CheckResult> crashes = crashes_of(run);
  Instance instance(ladder, run.size, run.inputs, options.seed, run.variant);
  // Of another problem a claim's bound may be wrong, and a count beside it would be no answer.
  const bool judged = run.size == ladder.trace_size && run.inputs == InputKind::normal &&
                      options.pitches.empty() && options.bases.empty();
  simt::keep_requests = !options.draw.empty();
  for (int index : run.levels) {
    const LevelEntry& level = ladder.levels[index];
    const auto crash = crashes.find(index);
    if (crash != crashes.end()) {
      LevelResult& row = result.levels.emplace_back(describe(level, nullptr));
      row.check = crash->second;
      if (options.explain) print_explained(ladder, row, size_text(run.size), "");
      continue;
    }
    LevelResult row = describe(level, &instance.problem());
    const TracedRun traced = trace_level(level, instance, run.isolation);
    row.check = traced.check;
    row.counters = traced.counters;
    if (judged) row.claims = traced.claims;
    row.findings = traced.findings;
    if (options.explain) {
      row.lines = traced.lines;
      print_explained(ladder, row, size_text(run.size), traced.report);
      if (!judged && !row.claims.empty()) print_not_judged(ladder);
    }
    if (!traced.requests.empty()) {
      write_requests(requests_file(options.draw, ladder.name, level.name), chapter, ladder.name,
                     level.name, run.size, nlohmann::ordered_json::parse(traced.requests));
    }
    result.levels.push_back(std::move(row));
  }
  return result;
}
#else
LadderResult execute(const Chapter& chapter, const LadderRun& run,
                     [[maybe_unused]] const Libraries& libraries, const Options& options) {
  const Ladder& ladder = *run.ladder;
  LadderResult result = begin(chapter, run, options);
  const auto trace_problem = problem_of(ladder, ladder.trace_size);
  const std::map<int, CheckResult> crashes = crashes_of(run);
  std::string lost;  // the level that made the GPU unusable to this process
  {                  // the buffers are freed before anything is timed
    Progress progress;
    Instance instance(ladder, run.checked_size, run.inputs, options.seed, run.variant);
    double first_error = -1;
    for (int index : run.levels) {
      const LevelEntry& level = ladder.levels[index];
      const auto crash = crashes.find(index);
      const bool crashed = crash != crashes.end();
      LevelResult& row =
          result.levels.emplace_back(describe(level, crashed ? nullptr : trace_problem.get()));
      if (crashed) {
        row.check = crash->second;
        continue;
      }
      if (!lost.empty()) {
        row.check = {Fault::not_run, "level " + lost + " made the GPU unusable to this process"};
        continue;
      }
      progress.show(fmt::format("checking {} at {} ({}/{})", level.name,
                                size_text(run.checked_size), result.levels.size(),
                                run.levels.size()));
      const CheckResult check = check_level(level, instance, instance.drawn(2), run.isolation);
      row.check = check;
      if (check.status == CheckResult::Status::mismatch && device_is_lost()) {
        row.check.set(Fault::crash, check.reason);
        lost = level.name;
      }
      if (check.fault != Fault::none) continue;
      if (index == 0) first_error = check.max_error;
      if (ladder.gate_on_first_level && first_error >= 0 && check.max_error > 2 * first_error) {
        row.check.set(Fault::imprecise,
                      fmt::format("error {:.3g} is more than twice the first level's {:.3g}",
                                  check.max_error, first_error));
      }
    }
  }
  result.device_lost = !lost.empty();
#if COOKBOOK_CUDA
  if (run.timed && !result.device_lost) time_levels(run, libraries, options, result);
#endif
  run_traced(chapter, ladder, options, result);
  // Speed claims hold at the ladder's own size; at any other size they are not checked.
  if (run.size == ladder.gpu_size) {
    for (LevelResult& row : result.levels) {
      for (ClaimResult& claim : row.claims) {
        check_speed_claim(claim, row, device_info().name, chapter.speed_claims_for);
      }
    }
  }
  return result;
}
#endif

}  // namespace cookbook
