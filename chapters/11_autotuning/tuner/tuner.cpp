// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "common/backend/whole_number.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook::tune {
namespace {

// Below this, launch latency decides and no configuration can win anything.
constexpr double kWorthTuningBytes = 1 << 20;

std::uint64_t decisions = 0;  // calls of `decide` in this process

std::string all_reasons(const Space& space, const std::vector<Fate>& fates) {
  std::string text = fmt::format("space `{}` has no configuration for this:", space.kernel);
  for (const Fate& fate : fates) {
    text += fmt::format("\n  {}: {}", space[fate.candidate].id(), fate.reason);
  }
  return text;
}

double bytes_of(const AnyProblem& problem) {
  double bytes = 0;
  for (const TensorSpec& spec : problem.tensors()) bytes += double(spec.bytes());
  return bytes;
}

Measured measured(const std::vector<double>& us, const Ratio& ratio, std::size_t rounds) {
  return {median(us), ratio.ratio, ratio.low, ratio.high, static_cast<int>(rounds), ""};
}

}  // namespace

std::string differences(const Parameters& from, const Parameters& to) {
  std::vector<std::string> parts;
  for (const Parameter& p : to) {
    const std::int64_t before = value_of(from, p.name, p.value);
    if (before != p.value) parts.push_back(fmt::format("{} {} -> {}", p.name, before, p.value));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Mode mode_from_environment() {
  const char* value = std::getenv("COOKBOOK_AUTOTUNE");
  const std::string text = value ? value : "tune";
  if (text == "off") return Mode::off;
  if (text == "read") return Mode::read;
  if (text == "tune" || text.empty()) return Mode::tune;
  throw std::invalid_argument("COOKBOOK_AUTOTUNE is '" + text + "'; it must be off, read or tune");
}

std::string why_not_time(const std::function<const char*(const char*)>& environment,
                         const std::string& libraries) {
  for (const char* name : {"CUDA_INJECTION64_PATH", "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
                           "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "NV_NSIGHT_INJECTION_PORT_BASE",
                           "NV_TPS_LAUNCH_TOKEN", "NV_SANITIZER_INJECTION_PORT_BASE",
                           "NV_SANITIZER_INJECTION_TRANSPORT_TYPE"}) {
    if (environment(name))
      return fmt::format("a profiler or sanitizer is attached ({} is set)", name);
  }
  const char* blocking = environment("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::string(blocking) != "0") return "CUDA_LAUNCH_BLOCKING serialises launches";
  for (const char* name : {"libcuda-injection", "libcupti", "libsanitizer-collection",
                           "libToolsInjection", "libnvperf"}) {
    if (libraries.find(name) != std::string::npos) {
      return fmt::format("a profiler or sanitizer is attached ({} is loaded)", name);
    }
  }
  return "";
}

std::string why_not_time() {
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return why_not_time([](const char* name) { return static_cast<const char*>(std::getenv(name)); },
                      maps.str());
}

Shard parse_shard(const std::string& text) {
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    const auto index = whole_number<int>(text.substr(0, slash));
    const auto count = whole_number<int>(text.substr(slash + 1));
    if (index && count && *index >= 0 && *index < *count) return {*index, *count};
  }
  throw std::invalid_argument("a shard is i/n with 0 <= i < n, such as 0/4; got '" + text + "'");
}

std::string tolerance_too_tight(const AnyProblem& problem, const HostTensors& tensors) {
  for (const TensorSpec& spec : problem.tensors()) {
    if (spec.role == Role::input || spec.rows == 0 || spec.cols == 0) continue;
    std::vector<double> value(static_cast<std::size_t>(spec.cols)), bound(value.size());
    problem.reference_row(tensors, spec.name, 0, value.data(), bound.data());
    for (std::size_t col = 0; col < value.size(); ++col) {
      if (!std::isfinite(value[col])) continue;
      const double rounding = half_ulp(spec.dtype, value[col]);
      if (bound[col] < rounding) {
        return fmt::format(
            "{}[0][{}] = {:.6g} may err by {:.3g}, but rounding it to {} alone may err by {:.3g}: "
            "the tolerance is too tight for the type",
            spec.name, col, value[col], bound[col], dtype_name(spec.dtype), rounding);
      }
    }
  }
  return "";
}

Size small_size(Size size) {
  for (std::int64_t& extent : size) {
    if (extent > 640) extent = 512 + extent % 128;
  }
  return size;
}

DeviceVerifier::DeviceVerifier(const Space& space, Instance& instance, const Size& size,
                               const Variant& variant, double full_bytes)
    : space_(space), full_(instance) {
  if (bytes_of(instance.problem()) > full_bytes) {
    small_ = std::make_unique<Instance>(space.searched(), small_size(size), InputKind::normal, 1,
                                        variant);
  }
}

std::string DeviceVerifier::check(std::size_t candidate) {
  Instance& instance = small_ ? *small_ : full_;
  const CheckResult result = check_level(space_[candidate].search, instance, instance.drawn(2));
  return result.status == CheckResult::Status::ok ? "" : result.reason;
}

std::string DeviceVerifier::confirm(std::size_t candidate) {
  if (!small_) return "";
  const CheckResult result = check_level(space_[candidate].search, full_, full_.drawn(1));
  return result.status == CheckResult::Status::ok ? "" : result.reason;
}

std::string DeviceVerifier::hint() {
  const Instance& checked = small_ ? *small_ : full_;
  return tolerance_too_tight(checked.problem(), checked.tensors());
}

Survivors survivors(const Space& space, const Recording& recording) {
  const TimeMatrix times = recorded_times(space, recording);
  return {shrink(times, kMostSurvivors), "recorded on " + recording.device.name, best_fixed(times)};
}

Survivors survivors(const Space& space, const DeviceInfo& device) {
  if (const auto recording = find_recording(space, device.cc())) {
    Survivors kept = survivors(space, *recording);
    if (!kept.indices.empty()) return kept;
  }
  // A model errs: the places left go to what it would choose if its first choices did not exist.
  TimeMatrix times = predicted_times(space, device);
  std::vector<std::size_t> kept = shrink(times, kMostSurvivors);
  while (kept.size() < kMostSurvivors) {
    for (std::size_t c : kept) {
      times.us[c].assign(times.sizes.size(), std::numeric_limits<double>::infinity());
    }
    const auto next = shrink(times, kMostSurvivors - kept.size());
    if (next.empty()) break;
    kept.insert(kept.end(), next.begin(), next.end());
  }
  kept.resize(std::min(kept.size(), kMostSurvivors));
  return {kept, space.model ? "predicted by the model" : "first of the space", std::nullopt};
}

Report tune(const Space& space, const Size& size, const AnyProblem& problem,
            const DeviceInfo& device, const Survivors& survivors, Timer& timer, Verifier* verifier,
            const TuneOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Report report;
  report.size = size;
  report.device = device.name;
  report.chosen_by = survivors.chosen_by;
  report.fates = legality(space, problem, device);
  auto show = [&](const std::string& text) {
    if (options.progress)
      options.progress(fmt::format("{} {}: {}", space.kernel, size_text(size), text));
  };

  // Who takes part: the default always, then this shard's share of the survivors.
  int turn = 0;
  std::vector<std::size_t> alive;
  for (Fate& fate : report.fates) {
    if (fate.stage != Stage::timed) continue;
    if (alive.empty()) {
      alive.push_back(fate.candidate);
    } else if (std::ranges::count(survivors.indices, fate.candidate) == 0) {
      fate.stage = Stage::pruned;
      fate.reason = "not among the survivors " + survivors.chosen_by;
    } else if (turn++ % options.shard.count != options.shard.index) {
      fate.stage = Stage::other_shard;
    } else {
      alive.push_back(fate.candidate);
    }
  }
  if (alive.empty()) {
    report.problem = all_reasons(space, report.fates);
    return report;
  }
  const std::size_t standard = alive.front();
  report.entry.default_id = space[standard].id();
  if (survivors.fixed && (report.fates[*survivors.fixed].stage == Stage::timed ||
                          report.fates[*survivors.fixed].stage == Stage::other_shard)) {
    report.entry.fixed_id = space[*survivors.fixed].id();
  }
  auto fail = [&](std::size_t c, const std::string& reason) {
    report.fates[c] = {c, Stage::failed, reason};
    report.entry.measured[space[c].id()] = {.failed = reason};
    std::erase(alive, c);
  };

  // Right first, fast second.
  for (std::size_t c : std::vector<std::size_t>(alive)) {
    if (!verifier) break;
    show("checking " + space[c].id());
    if (const std::string wrong = verifier->check(c); !wrong.empty()) fail(c, wrong);
  }
  if (alive.empty() || alive.front() != standard) {
    // Without a right default there is nothing to be compared with, and something is badly wrong.
    const std::string hint = verifier ? verifier->hint() : "";
    report.problem = fmt::format("the default configuration of `{}` is wrong: {}{}", space.kernel,
                                 report.fates[standard].reason, hint.empty() ? "" : "; " + hint);
    return report;
  }

  show("warming up");
  timer.warm_up(standard);
  show(fmt::format("timing {} configurations", alive.size()));
  Arena arena;
  arena.space = &space, arena.candidates = alive, arena.size = size, arena.device = device;
  arena.rounds = options.search_rounds;
  Search search = successive_elimination(arena, timer);
  report.looks = search.steps.empty() ? 0 : search.steps.back().looks;
  for (const auto& [c, reason] : search.failures) fail(c, reason);

  // Finalists against the default in the same rounds, timed as a ladder would: look after look has
  // kept the GPU busy, and at the clocks that are left another configuration may be the fastest.
  // Only this may make a winner; the rest keep what the search saw of them.
  std::vector<std::size_t> last = {standard};
  std::size_t places = 1 + options.finalists;
  for (std::size_t c : search.ranking()) {
    if (c == standard) continue;
    const bool asked = space[c].id() == report.entry.fixed_id;  // it takes nobody's place
    if (asked) ++places;
    if (asked || last.size() < places) last.push_back(c);
  }
  for (std::size_t c : search.candidates) {
    if (std::ranges::count(last, c) > 0) continue;
    const Ratio ratio = paired_ratio(search.us[standard], search.us[c]);
    report.entry.measured[space[c].id()] = measured(search.us[c], ratio, 0);
  }
  show(fmt::format("timing {} finalists again", last.size()));
  std::map<std::string, std::vector<double>> final_us;
  std::vector<std::string> unconfirmed;
  const std::vector<Samples> samples = timer.time_as_ladder(last);
  report.looks += static_cast<int>(last.size());
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (!samples[i].failure.empty() || !samples[0].failure.empty()) {
      fail(last[i], samples[i].failure.empty() ? "the default failed" : samples[i].failure);
      continue;
    }
    const std::string id = space[last[i]].id();
    const Ratio ratio = i == 0 ? Ratio{1, 1, 1} : paired_ratio(samples[0].us, samples[i].us);
    report.fates[last[i]].stage = Stage::finalist;
    report.entry.measured[id] = measured(samples[i].us, ratio, samples[i].us.size());
    final_us[id] = samples[i].us;
    const Ratio seen = paired_ratio(search.us[standard], search.us[last[i]]);
    if (worth_changing(seen.ratio, seen.low) && !worth_changing(ratio.ratio, ratio.low)) {
      unconfirmed.push_back(
          fmt::format("{} ({:.3f}x the default in the search, {:.3f}x timed as a ladder)", id,
                      seen.ratio, ratio.ratio));
    }
  }
  report.unconfirmed = fmt::format("{}", fmt::join(unconfirmed, "; "));
  // A winner that is wrong at full size is none.
  while (verifier && report.entry.winner() != report.entry.default_id) {
    const std::size_t winner = *space.find(report.entry.winner());
    show("confirming " + space[winner].id());
    const std::string wrong = verifier->confirm(winner);
    if (wrong.empty()) break;
    fail(winner, wrong);
  }
  std::vector<std::string> ties;
  for (const auto& [id, us] : final_us) {
    const std::string winner = report.entry.winner();
    if (id == winner || !report.entry.measured[id].failed.empty()) continue;
    const Ratio ratio = paired_ratio(us, final_us[winner]);
    if (!worth_changing(ratio.ratio, ratio.low)) ties.push_back(id);
  }
  report.tie = fmt::format("{}", fmt::join(ties, "; "));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

TuneOptions replay_options(const RecordedProblem& problem) {
  std::size_t samples = 0;
  for (const auto& [id, each] : problem.configurations) samples = std::max(samples, each.us.size());
  TuneOptions options;
  const int most = std::max(1, static_cast<int>(samples));
  options.search_rounds = std::min(options.search_rounds, most);
  return options;
}

void print(const Report& report, const Space& space) {
  std::map<Stage, int> count;
  for (const Fate& fate : report.fates) ++count[fate.stage];
  const int all = static_cast<int>(report.fates.size()), compiled = all - count[Stage::illegal];
  const int able = compiled - count[Stage::unsupported], kept = able - count[Stage::pruned];
  fmt::print("\n{} at {} on {}\n", space.kernel, size_text(report.size), report.device);
  fmt::print("  {} configurations in the code > {} compiled > {} can run this > {} survive ({})",
             all, compiled, able, kept, report.chosen_by);
  if (count[Stage::other_shard])
    fmt::print(" > {} in this shard", kept - count[Stage::other_shard]);
  fmt::print(" > {} right > {} finalists\n",
             kept - count[Stage::other_shard] - count[Stage::failed], count[Stage::finalist]);
  if (!report.problem.empty()) {
    fmt::print("  {}\n", report.problem);
    return;
  }
  std::size_t width = 13;
  for (const Candidate& each : space.candidates()) width = std::max(width, each.id().size());
  fmt::print("  {:<{}}  {:>10}  {:>7}  {:<16} {}\n", "configuration", width, "us", "speed",
             "95 % interval", "fate");
  std::vector<Fate> fates = report.fates;
  auto us_of = [&](const Fate& fate) {
    const auto at = report.entry.measured.find(space[fate.candidate].id());
    return at == report.entry.measured.end() || !at->second.failed.empty()
               ? std::numeric_limits<double>::infinity()
               : at->second.us;
  };
  std::stable_sort(fates.begin(), fates.end(),
                   [&](const Fate& a, const Fate& b) { return us_of(a) < us_of(b); });
  for (const Fate& fate : fates) {
    const std::string id = space[fate.candidate].id();
    std::string what = stage_name(fate.stage);
    if (id == report.entry.default_id) what += ", default";
    if (id == report.entry.fixed_id) what += ", best fixed";
    if (!fate.reason.empty()) what += ": " + fate.reason;
    if (std::isinf(us_of(fate))) {
      fmt::print("  {:<{}}  {:>10}  {:>7}  {:<16} {}\n", id, width, "", "", "", what);
    } else {
      const Measured& m = report.entry.measured.at(id);
      fmt::print("  {:<{}}  {:>10.2f}  {:>6.3f}x  [{:.3f}, {:.3f}]   {}\n", id, width, m.us,
                 m.ratio, m.low, m.high, what);
    }
  }
  const std::string winner = report.entry.winner();
  if (winner == report.entry.default_id) {
    const Measured* next = nullptr;
    for (const auto& [id, m] : report.entry.measured) {
      if (id == winner || !m.may_win()) continue;
      if (!next || m.ratio > next->ratio) next = &m;
    }
    fmt::print("  The default stays: nothing is faster beyond noise and by {:.0f} %{}.\n",
               100 * (kLeastGain - 1),
               next ? fmt::format("; the best of the others is {:.3f}x", next->ratio) : "");
  } else {
    const Measured& m = report.entry.measured.at(winner);
    const auto set_by = [&](const std::string& id) { return space[*space.find(id)].parameters; };
    const Parameters before = set_by(report.entry.default_id), after = set_by(winner);
    const DeviceInfo& device = device_info();
    fmt::print("  Chosen: {}, {:.3f}x the default; it sets {}{}.\n", winner, m.ratio,
               differences(before, after),
               space.model ? fmt::format(" (the model of this kernel expects {:.3f}x)",
                                         space.model(before, report.size, device) /
                                             space.model(after, report.size, device))
                           : "");
  }
  if (!report.unconfirmed.empty()) {
    fmt::print("  Not confirmed after the search: {}.\n", report.unconfirmed);
  }
  if (!report.tie.empty()) {
    fmt::print("  As fast, within noise or {:.0f} %: {}.\n", 100 * (kLeastGain - 1), report.tie);
  }
  fmt::print("  {} looks, {:.1f} s in all.\n", report.looks, report.seconds);
}

std::uint64_t decisions_on_hot_path(const LevelEntry& level, Instance& instance, int runs) {
  const auto run = level.prepare(instance.problem(), instance.pointers());
  const std::uint64_t before = decisions;
  for (int i = 0; i < runs; ++i) run(Stream{});
  synchronize();
  return decisions - before;
}

std::vector<std::size_t> require_legal(const Space& space, const AnyProblem& problem,
                                       const DeviceInfo& device) {
  const auto able = legal(space, problem, device);
  if (able.empty()) {
    throw std::invalid_argument(all_reasons(space, legality(space, problem, device)));
  }
  return able;
}

std::function<void(Stream)> prepare_first(const Space& space, const std::vector<std::size_t>& order,
                                          const AnyProblem& problem, const DevicePointers& at) {
  std::string reason = "the space `" + space.kernel + "` is empty";
  for (std::size_t c : order) {
    try {
      return space[c].level.prepare(problem, at);
    } catch (const std::invalid_argument& refused) {
      reason = refused.what();
    }
  }
  throw std::invalid_argument(reason);
}

Machine this_machine() {
  return {
      device_info(), [] { return why_not_time(); },
      [](const Space& space, const Size& size, const Variant& variant, const TuneOptions& options,
         const Cache& cache) { return tune_on_device(space, size, variant, options, cache); }};
}

Decision decide(const Space& space, const AnyProblem& problem, const DevicePointers& at,
                const Cache& cache, const Machine& machine) {
  ++decisions;
  const Mode mode = mode_from_environment();
  const DeviceInfo& device = machine.device;
  const auto able = require_legal(space, problem, device);
  if (mode == Mode::off) return {able.front(), "the default: COOKBOOK_AUTOTUNE=off"};
  const Size size = space.size_of(problem);
  const auto runnable = [&](const std::string& id) {
    const auto found = space.find(id);
    return found && std::ranges::count(able, *found) > 0 ? found : std::nullopt;
  };
  if (device.is_simt) {
    // Nothing can be timed here; what a GPU recorded for this very size can be replayed.
    const auto recording = find_recording(space, device.cc());
    const RecordedProblem* recorded = recording ? recording->find(size) : nullptr;
    if (!recorded) return {able.front(), "the default: this size was never recorded"};
    ReplayTimer timer(*recorded, space.ids());
    const Report report =
        tune(space, size, problem, recording->device, survivors(space, recording->device), timer,
             nullptr, replay_options(*recorded));
    if (const auto winner = runnable(report.entry.winner())) {
      return {*winner, "recorded on " + recording->device.name};
    }
    return {able.front(), "the default: what was recorded cannot run here"};
  }
  const Key key = make_key(space, problem, at, device);
  if (const auto entry = cache.find(key)) {
    if (const auto winner = runnable(entry->winner())) {
      return {*winner, "cached in " + cache.file()};
    }
  }
  if (mode == Mode::read)
    return {able.front(), "the default: not in the cache, and may not search"};
  if (bytes_of(problem) < kWorthTuningBytes)
    return {able.front(), "the default: too small to be worth a search"};
  if (const std::string why = machine.why_not_time(); !why.empty()) {
    fmt::print(stderr, "autotune: not now, {}; using the default\n", why);
    return {able.front(), "the default: " + why};
  }
  // The search gets buffers of its own, laid out like the caller's.
  const auto specs = problem.tensors();
  Variant variant;
  variant.extra_pitch = std::max<std::int64_t>(0, specs.front().pitch - specs.front().cols);
  for (const TensorSpec& spec : specs) {
    const auto base = reinterpret_cast<std::uintptr_t>(at.by_name.at(spec.name));
    variant.misalign_elements = static_cast<std::int64_t>(base % 16 / dtype_bytes(spec.dtype));
    if (variant.misalign_elements) break;
  }
  const Report report = machine.search(space, size, variant, {}, cache);
  if (!report.problem.empty()) throw std::invalid_argument(report.problem);
  // One variant lays all buffers out alike. Where the caller's differ from one another their key is
  // another one, and without an entry of its own each plan would search again.
  std::string not_kept = report.not_kept;
  if (report.entry.key.digest() != key.digest()) {
    Entry entry = report.entry;
    entry.key = key;
    not_kept = cache.try_add(entry);
  }
  if (!not_kept.empty()) {
    fmt::print(stderr, "autotune: {}; what was found is not kept\n", not_kept);
  }
  return {*space.find(report.entry.winner()), "tuned just now"};
}

}  // namespace cookbook::tune
