// SPDX-License-Identifier: MIT
// Compiled for each kind of executable, as execute.cpp is: the size depends on the kind.
#include "common/harness/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/backend/device_bytes.hpp"
#include "common/harness/check.hpp"
#include "common/harness/options.hpp"
#include "common/harness/plan.hpp"
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
/// Joules and microseconds per launch, back to back. NVML's counter changes only every few
/// milliseconds, so time and launches are taken from one change of it to another.
nlohmann::ordered_json energy(const std::function<void(Stream)>& run) {
  constexpr double kSeconds = 0.4, kBatchSeconds = 2e-3;
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  run(Stream{});
  synchronize();
  const auto once = Clock::now();
  run(Stream{});
  synchronize();
  const double estimate = std::max(seconds(Clock::now() - once), 1e-7);
  const int batch = std::clamp(static_cast<int>(kBatchSeconds / estimate), 1, 1000);
  struct Reading {
    double joules;
    Clock::time_point time;
    std::int64_t launches;
  };
  std::optional<Reading> first, last;
  std::optional<double> before = total_joules();
  std::int64_t launches = 0;
  const auto start = Clock::now();
  while (before && seconds(Clock::now() - start) < 2 * kSeconds) {
    for (int i = 0; i < batch; ++i) run(Stream{});
    synchronize();
    launches += batch;
    const std::optional<double> now = total_joules();
    if (!now || *now == *before) continue;
    before = now;
    last = Reading{*now, Clock::now(), launches};
    if (!first) first = last;
    if (seconds(last->time - first->time) >= kSeconds) break;
  }
  if (!first || last->launches == first->launches) return nullptr;
  const double count = static_cast<double>(last->launches - first->launches);
  const double time = seconds(last->time - first->time);
  return {{"joules", (last->joules - first->joules) / count},
          {"us", 1e6 * time / count},
          {"watts", (last->joules - first->joules) / time}};
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
  const Plan plan = make_plan(chapter, options, kPurpose);
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
