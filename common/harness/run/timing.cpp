// SPDX-License-Identifier: MIT
// CUDA backend only.
#include <fmt/format.h>

#include <algorithm>

#include "common/bench/bench.hpp"
#include "common/harness/contract/launches.hpp"
#include "common/harness/report/console.hpp"
#include "common/harness/report/rates.hpp"
#include "common/harness/run/execute.hpp"
#include "common/harness/run/roofs.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook {

void time_levels(const LadderRun& planned, const Libraries& libraries, const Options& options,
                 LadderResult& result) {
  const Ladder& ladder = *planned.ladder;
  const std::vector<int>& levels = planned.levels;
  Progress progress;
  auto show = [&progress](const std::string& text) { progress.show(text); };
  // Once before the first ladder; Report::end measures them again after the last one.
  static Roofs roofs = measure_roofs(show, planned.roofs);
  result.roofs = roofs;

  Instance instance(ladder, result.size, InputKind::normal, options.seed);
  std::vector<Contender> contenders;
  std::vector<TimedContender> timed;        // in the order of contenders
  std::vector<std::uint64_t> checked_hash;  // of each contender's right output
  // Checks `level`, and adds it to what is timed when it is right.
  const auto enter = [&](const LevelEntry& level, int number, std::size_t index, auto& row) {
    show(fmt::format("checking {} at {}", level.name, size_text(result.size)));
    const CheckResult check = check_level(level, instance, instance.drawn(1));
    row.check.set(check.fault, check.reason);
    if (check.fault != Fault::none) return;
    checked_hash.push_back(instance.output_hash());
    contenders.push_back({level.name, level.prepare(instance.problem(), instance.pointers())});
    TimedContender one;
    one.number = number, one.row = index, one.name = level.name;
    timed.push_back(std::move(one));
  };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (result.levels[i].check.is_failure()) continue;
    const LevelEntry& level = ladder.levels[levels[i]];
    enter(level, levels[i], i, result.levels[i]);
    if (result.levels[i].check.fault != Fault::none) continue;
    result.levels[i].launches = std::make_shared<const Launches>(launches_of([&] {
      level.prepare(instance.problem(), instance.pointers())(Stream{});
      synchronize();
    }));
  }
  for (const auto& [ladder_name, library] : libraries) {
    if (ladder_name != ladder.name) continue;
    ReferenceResult row;
    row.name = library.name;
    enter(library, TimedContender::kLibrary, result.references.size(), row);
    result.references.push_back(std::move(row));
  }

  BenchOptions bench;
  bench.progress = show;
  if (options.seconds) bench.seconds = *options.seconds, bench.hot = false;
  const std::vector<Measurement> measured = measure(contenders, bench, &result.clocks);
  for (std::size_t c = 0; c < timed.size(); ++c) {
    timed[c].cold = measured[c].cold, timed[c].hot = measured[c].hot;
    timed[c].cold_us = measured[c].cold_us;
    timed[c].error = measured[c].error;
  }
  enter_times(timed, result);
  // The roof may have been measured while the clock was low, after a kernel that needs much power.
  // So it is measured once more before a level is said to be faster than it.
  if (std::any_of(result.levels.begin(), result.levels.end(), over_its_roof)) {
    raise_roofs(measure_roofs(show, {ladder.roof}), roofs);
    result.roofs = roofs;
    enter_times(timed, result);
  }
  // Checked after timing as well: a level that wrote a wrong output while it was timed is wrong,
  // not fast.
  for (std::size_t c = 0; c < timed.size(); ++c) {
    if (timed[c].number == TimedContender::kLibrary || !timed[c].error.empty()) continue;
    LevelResult& row = result.levels[timed[c].row];
    show(fmt::format("checking {} after timing", row.name));
    const bool same_every_run = ladder.levels[timed[c].number].same_every_run;
    const CheckResult again =
        check_again(contenders[c].run, instance, checked_hash[c], same_every_run);
    if (again.fault != Fault::none) row.check.set(again.fault, "after timing: " + again.reason);
  }
  progress.clear();
  if (!options.benchmark_arguments.empty()) {
    register_google_benchmark(
        fmt::format("{}/{}/{}", result.program, ladder.name, size_text(result.size)), contenders,
        measured, result.bytes, result.flops);
  }
}

}  // namespace cookbook
