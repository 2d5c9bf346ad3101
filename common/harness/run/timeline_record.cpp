// SPDX-License-Identifier: MIT
// Runs a level and records its timeline. Compiled for each kind of executable.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/harness/contract/tokens.hpp"
#include "common/harness/report/result.hpp"
#include "common/harness/report/timeline.hpp"
#include "common/harness/run/commands.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/plan.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/isolate.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#else
#include "common/bench/bench.hpp"
#endif

namespace cookbook {
namespace {

using Json = nlohmann::ordered_json;
using timeline::Event;

constexpr std::uint32_t kBlocks = 4;  // the first blocks of the grid are recorded

/// The level to record, at its size.
struct Recorded {
  LadderRun run;
  const LevelEntry* level = nullptr;
};

Recorded recorded_level(const Chapter& chapter, const Options& options) {
  if (options.levels.size() > 1 || options.sizes.size() > 1) {
    throw UsageError("--timeline records one level at one size");
  }
  const RunPlan plan =
      make_plan(chapter, options, device_info().is_simt ? Purpose::trace : Purpose::time);
  Recorded recorded{plan.runs.front(), nullptr};
  recorded.level = &recorded.run.ladder->levels[recorded.run.levels.back()];
  return recorded;
}

/// The function that runs the level. Throws UsageError where it does not support the problem.
std::function<void(Stream)> prepare(const LevelEntry& level, const Instance& instance) {
  Support support = level.supports(instance.problem(), device_info());
  if (support) {
    try {
      return level.prepare(instance.problem(), instance.pointers());
    } catch (const std::invalid_argument& rule) {
      support = Support::no(rule.what());
    }
  }
  throw UsageError(fmt::format("level {} cannot run this problem: {}", level.name, support.reason));
}

Json about(const Chapter& chapter, const Recorded& recorded, const Options& options) {
  return {{"program", chapter.program()},
          {"ladder", recorded.run.ladder->name},
          {"level", recorded.level->name},
          {"size", size_text(recorded.run.size)},
          {"seed", options.seed},
          {"device", device_info().name},
          {"tokens", token_hash(recorded.level->source)}};
}

void write(const Options& options, const Recorded& recorded,
           const std::vector<TimelineTrack>& tracks, const Json& about) {
  const auto named_by_waits_only = [](const TimelineTrack& track) {
    return std::all_of(track.spans.begin(), track.spans.end(),
                       [](const TimelineSpan& span) { return span.category == "wait"; });
  };
  if (std::all_of(tracks.begin(), tracks.end(), named_by_waits_only)) {
    throw UsageError(fmt::format(
        "level {} has no marks: it starts no asynchronous copy or wgmma, and its loops contain no "
        "timeline::begin (docs/profiling.md)",
        recorded.level->name));
  }
  write_file(options.timeline, timeline_json(tracks, about).dump(1) + "\n");
  std::size_t spans = 0;
  for (const TimelineTrack& track : tracks) spans += track.spans.size();
  fmt::print("{}: {} spans of level {} at {}; ui.perfetto.dev opens it\n", options.timeline, spans,
             recorded.level->name, size_text(recorded.run.size));
}

/// The program whose kernels make marks, beside this one.
std::string program_with_marks(const std::string& program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto found = self.parent_path() / (program + "-timeline");
  if (!std::filesystem::exists(found, error)) {
    throw UsageError(fmt::format(
        "--timeline needs the program {}-timeline, which ./run builds when it is asked for one",
        program));
  }
  return found.string();
}

/// Has that program record the same.
int request_there(const Chapter& chapter, const Options& options, const Recorded& recorded) {
  Options request = options;
  request.ladder = recorded.run.ladder->name;
  request.levels = {recorded.level->name};
  request.sizes = {size_text(recorded.run.size)};
  return run_request(program_with_marks(chapter.program()), request);
}

#if COOKBOOK_SIMT
constexpr const char* kNoTimes =
    "order of the marks in one schedule of the SIMT backend; ts counts marks and is no time";

int record(const Chapter& chapter, const Options& options, const Recorded& recorded,
           const std::function<void(Stream)>& run) {
  if (simt::tracing_available()) return request_there(chapter, options, recorded);
  nlohmann::json found;
  const Outcome outcome = run_isolated(
      recorded.run.isolation,
      [&] {
        simt::start_timeline(kBlocks);
        run(Stream{});
        nlohmann::json events = nlohmann::json::array();
        for (const Event& e : simt::stop_timeline()) {
          events.push_back({e.clock, e.block, e.warp, e.kind, e.edge, e.object, e.value});
        }
        return events;
      },
      found);
  if (outcome.fault != Fault::none) {
    fmt::print(stderr, "{}: level {}: {}\n", chapter.program(), recorded.level->name,
               outcome.reason);
    return 3;
  }
  std::vector<Event> events;
  for (const auto& e : found) {
    events.push_back({0, e[0], e[1], e[2], e[3], e[4], e[5], e[6]});
  }
  Json metadata = about(chapter, recorded, options);
  metadata["clock"] = "order";
  metadata["note"] = kNoTimes;
  write(options, recorded, make_timeline(std::move(events), false), metadata);
  fmt::print("No times: {}.\n", kNoTimes);
  return 0;
}
#else
constexpr std::uint32_t kWarps = 32, kCapacity = 4096;  // of a block; marks of a warp

double median_us(const LevelEntry& level, const std::function<void(Stream)>& run) {
  BenchOptions options;
  options.hot = false;
  std::vector<ClockSample> clocks;
  const Measurement measured = measure({{level.name, run}}, options, &clocks).front();
  if (!measured.error.empty()) throw std::runtime_error(measured.error);
  return measured.cold.median;
}

/// In the program whose kernels make marks: one recorded launch, then its time with marks.
int record_here(const Chapter& chapter, const Options& options, const Recorded& recorded,
                const std::function<void(Stream)>& run, const timeline::Rings& rings,
                const DeviceMemory& events, const DeviceMemory& counts) {
  run(Stream{});
  synchronize();
  std::vector<std::uint32_t> made(kBlocks * kWarps);
  std::vector<Event> ring(std::size_t{kBlocks} * kWarps * kCapacity), recorded_events;
  counts.copy_to_host(made.data(), counts.bytes());
  events.copy_to_host(ring.data(), events.bytes());
  std::uint64_t lost = 0;
  for (std::size_t warp = 0; warp < made.size(); ++warp) {
    const std::uint32_t kept = std::min(made[warp], rings.capacity);
    lost += made[warp] - kept;
    const auto first = ring.begin() + static_cast<std::ptrdiff_t>(warp * kCapacity);
    recorded_events.insert(recorded_events.end(), first, first + kept);
  }
  Json metadata = about(chapter, recorded, options);
  metadata["clock"] = "time";
  metadata["lost_marks"] = lost;
  metadata["instrumented_us"] = median_us(*recorded.level, run);
  write(options, recorded, make_timeline(std::move(recorded_events), true), metadata);
  if (lost > 0) fmt::print("The first {} marks are lost: a warp keeps {}.\n", lost, kCapacity);
  return 0;
}

/// Starts that program, and compares its time with the one of this program, which has no marks.
int record_there(const Chapter& chapter, const Options& options, const Recorded& recorded,
                 const std::function<void(Stream)>& run) {
  const int status = request_there(chapter, options, recorded);
  if (status != 0) return status;
  Json trace = Json::parse(std::ifstream(options.timeline));
  Json& metadata = trace["otherData"];
  const double with_marks = metadata.at("instrumented_us");
  const double without = median_us(*recorded.level, run);
  metadata["plain_us"] = without;
  metadata["overhead"] = with_marks / without;
  write_file(options.timeline, trace.dump(1) + "\n");
  fmt::print("Overhead of the marks: {:.1f} us instead of {:.1f} us, {:.2f}x\n", with_marks,
             without, with_marks / without);
  return 0;
}

int record(const Chapter& chapter, const Options& options, const Recorded& recorded,
           const std::function<void(Stream)>& run) {
  const DeviceMemory events(std::size_t{kBlocks} * kWarps * kCapacity * sizeof(Event), "events");
  DeviceMemory counts(kBlocks * kWarps * sizeof(std::uint32_t), "counts");
  counts.fill(0);
  const timeline::Rings rings{events.as<Event>(), counts.as<std::uint32_t>(), kBlocks, kWarps,
                              kCapacity};
  if (!timeline::set_all_rings(rings)) return record_there(chapter, options, recorded, run);
  return record_here(chapter, options, recorded, run, rings, events, counts);
}
#endif

}  // namespace

int record_timeline(const Chapter& chapter, const Options& options) {
  const Recorded recorded = recorded_level(chapter, options);
  require_writable(options.timeline);
  Instance instance(*recorded.run.ladder, recorded.run.size, InputKind::normal, options.seed);
  const std::function<void(Stream)> run = prepare(*recorded.level, instance);
  instance.reset();
  return record(chapter, options, recorded, run);
}

}  // namespace cookbook
