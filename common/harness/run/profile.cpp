// SPDX-License-Identifier: MIT
// Compiled for each kind of executable, as execute.cpp is: the size depends on the kind.
#include "common/harness/run/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/backend/device_bytes.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/plan.hpp"
#include "common/harness/verdict/check.hpp"
#if COOKBOOK_CUDA
#include "common/bench/nvml.hpp"
#endif

namespace cookbook {
namespace {

#if COOKBOOK_TRACED
constexpr Purpose kPurpose = Purpose::trace;
#elif COOKBOOK_CUDA
constexpr Purpose kPurpose = Purpose::time;  // at the ladder's own size
#else
constexpr Purpose kPurpose = Purpose::check;
#endif

#if COOKBOOK_CUDA
/// Joules and microseconds per launch, back to back. Reading NVML takes milliseconds in which the
/// GPU would be idle, so it is read only before and after. Its counter lags by some milliseconds:
/// the same kernel runs before the first reading, so both lags are worth the same energy.
nlohmann::ordered_json energy(const std::function<void(Stream)>& run) {
  constexpr double kWarmUpSeconds = 0.2, kSeconds = 0.6;
  using Clock = std::chrono::steady_clock;
  const auto seconds_of = [&run](int launches) {
    const auto start = Clock::now();
    for (int i = 0; i < launches; ++i) run(Stream{});
    synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  seconds_of(1);
  const int few = std::clamp(static_cast<int>(0.02 / std::max(seconds_of(1), 1e-6)), 1, 1000);
  const double once = std::max(seconds_of(few) / few, 1e-7);
  const auto launches = [once](double seconds) {
    return std::max(1, static_cast<int>(std::min(seconds / once, 1e6)));
  };
  seconds_of(launches(kWarmUpSeconds));
  const std::optional<double> before = total_joules();
  const int count = launches(kSeconds);
  const double time = seconds_of(count);
  const std::optional<double> after = total_joules();
  if (!before || !after || *after <= *before) return nullptr;
  return {{"joules", (*after - *before) / count},
          {"us", 1e6 * time / count},
          {"watts", (*after - *before) / time}};
}
#endif

/// Runs the level once or, with `energy_json`, for as long as its energy takes. Returns why it
/// cannot run this problem, or an empty string.
std::string profile(const LevelEntry& level, Instance& instance, DeviceMemory& mark,
                    [[maybe_unused]] nlohmann::ordered_json* energy_json) {
  const Support support = level.supports(instance.problem(), device_info());
  if (!support) return support.reason;
  std::function<void(Stream)> run;
  try {
    run = level.prepare(instance.problem(), instance.pointers());
  } catch (const std::invalid_argument& rule) {
    return rule.what();
  }
  instance.reset();
  synchronize();
#if COOKBOOK_CUDA
  if (energy_json != nullptr) {
    *energy_json = energy(run);
    return "";
  }
#endif
  const ProfilerRange range;
  fill_elements(mark.data(), 1, 4, 0);
  run(Stream{});
  synchronize();
  return "";
}

}  // namespace

int profile_levels(const Chapter& chapter, const Options& options) {
  const RunPlan plan = make_plan(chapter, options, kPurpose);
  const LadderRun& run = plan.runs.front();
#if COOKBOOK_CUDA
  if (options.energy && !total_joules()) {
    throw UsageError("--energy: NVML does not know this GPU's energy");
  }
#else
  if (options.energy) throw UsageError("--energy needs the CUDA backend: nothing uses energy here");
#endif
  require_writable(options.json);
  Instance instance(*run.ladder, run.size, InputKind::normal, options.seed);
  DeviceMemory mark(4, "mark");
  nlohmann::ordered_json levels = nlohmann::ordered_json::array();
  for (const int index : run.levels) {
    const LevelEntry& level = run.ladder->levels[index];
    nlohmann::ordered_json joules;
    const std::string reason = profile(level, instance, mark, options.energy ? &joules : nullptr);
    fmt::print("{}: {}\n", level.name, reason.empty() ? "launched" : reason);
    levels.push_back({{"name", level.name}, {"reason", reason}});
    if (options.energy) levels.back()["energy"] = joules;
  }
  const nlohmann::ordered_json document = {{"chapter", chapter.number},
                                           {"ladder", run.ladder->name},
                                           {"size", run.size},
                                           {"device", device_info().name},
                                           {"levels", levels}};
  if (!options.json.empty()) write_file(options.json, document.dump(1) + "\n");
  return 0;
}

}  // namespace cookbook
