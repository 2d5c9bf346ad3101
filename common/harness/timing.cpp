// SPDX-License-Identifier: MIT
// CUDA backend only.
#include <fmt/format.h>

#include "common/bench/bench.hpp"
#include "common/harness/check.hpp"
#include "common/harness/console.hpp"
#include "common/harness/execute.hpp"
#include "common/harness/roofs.hpp"
#include "common/harness/statistics.hpp"

namespace cookbook {

void time_levels(const LadderRun& planned, const Libraries& libraries, const Options& options,
                 LadderResult& result) {
  const Ladder& ladder = *planned.ladder;
  const std::vector<int>& levels = planned.levels;
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
    if (is_failure(row.status)) continue;
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
    // The previous level of the ladder: not the last one that was selected, or could run.
    if (previous >= 0 && levels[row_of[previous]] + 1 == levels[row_of[c]]) {
      row.vs_previous = paired_ratio(measured[previous].cold_us, m.cold_us);
    }
    previous = static_cast<int>(c);
    if (reference >= 0) {
      row.vs_reference = paired_ratio(measured[reference].cold_us, m.cold_us);
      row.reference_name = contenders[reference].name;
    }
  }
  // Checked after timing as well: a level that wrote a wrong output while it was timed is wrong,
  // not fast.
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (row_of[c] < 0 || !measured[c].error.empty()) continue;
    LevelResult& row = result.levels[row_of[c]];
    show(fmt::format("checking {} after timing", row.name));
    const bool same_every_run = ladder.levels[levels[row_of[c]]].same_every_run;
    const std::string wrong =
        check_again(contenders[c].run, instance, checked_hash[c], same_every_run);
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

}  // namespace cookbook
