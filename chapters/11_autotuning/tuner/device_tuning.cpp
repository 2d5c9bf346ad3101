// SPDX-License-Identifier: MIT
// The part of the tuner that times kernels: samples from common/bench.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "chapters/11_autotuning/tuner/tuner.hpp"
#include "common/harness/contract/tokens.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/process.hpp"

namespace cookbook::tune {
namespace {

// `sampler`, or where there is none that of this device. Throws where nothing can be timed.
Sampler require_timing(const Sampler& sampler, const char* what) {
  if (const std::string why = why_not_time(); !why.empty()) {
    throw std::runtime_error("not tuning: " + why);
  }
  if (sampler) return sampler;
#if COOKBOOK_CUDA
  (void)what;
  return [](const std::vector<Contender>& contenders, const BenchOptions& options) {
    return measure(contenders, options, nullptr);
  };
#else
  throw std::runtime_error(
      fmt::format("{} needs a GPU: on the SIMT backend there is nothing to time", what));
#endif
}

Samples samples_of(const Measurement& m) {
  return {m.error.empty() ? m.cold_us : std::vector<double>{}, m.error};
}

// Plans are made once, on the search's own buffers; a sample is a launch of one, after an L2 flush.
// Looks and finals are samples of the ladder's own sampler.
class GpuTimer : public Timer {
 public:
  GpuTimer(const Space& space, Instance& instance, const Sampler& sampler)
      : space_(space), instance_(instance), sampler_(sampler) {}

  void warm_up(std::size_t candidate) override {
    const auto run = plan(candidate);
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300)) {
      run(Stream{});
      synchronize();
    }
  }

  std::vector<Samples> time(const std::vector<std::size_t>& candidates, int rounds) override {
    BenchOptions options;
    options.min_rounds = options.max_rounds = rounds;
    return sample(candidates, options);
  }

  std::vector<Samples> time_as_ladder(const std::vector<std::size_t>& candidates) override {
    // A ladder begins when its levels have been checked on the CPU, on a GPU that had nothing to do
    // meanwhile, and often it ends before the clocks have sunk. This GPU was busy until now.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return sample(candidates, {});  // with the options of a ladder
  }

  std::vector<Contender> libraries;  // timed in the same rounds
  std::map<std::string, Samples> library_samples;

 private:
  std::vector<Samples> sample(const std::vector<std::size_t>& candidates, BenchOptions options) {
    options.hot = false;
    std::vector<Contender> contenders;
    std::vector<Samples> all(candidates.size());
    std::vector<std::size_t> place;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      try {
        contenders.push_back({space_[candidates[i]].id(), plan(candidates[i])});
        place.push_back(i);
      } catch (const std::exception& error) {
        all[i].failure = error.what();
      }
    }
    for (const Contender& library : libraries) contenders.push_back(library);
    const auto measured = sampler_(contenders, options);
    for (std::size_t i = 0; i < place.size(); ++i) all[place[i]] = samples_of(measured[i]);
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      library_samples[libraries[i].name] = samples_of(measured[place.size() + i]);
    }
    return all;
  }

  std::function<void(Stream)> plan(std::size_t candidate) {
    auto& made = plans_[candidate];
    if (!made) made = space_[candidate].search.prepare(instance_.problem(), instance_.pointers());
    return made;
  }

  const Space& space_;
  Instance& instance_;
  const Sampler& sampler_;
  std::map<std::size_t, std::function<void(Stream)>> plans_;
};

}  // namespace

Report tune_on_device(const Space& space, const Size& size, const Variant& variant,
                      const TuneOptions& options, const Cache& cache, const Sampler& given) {
  const Sampler sampler = require_timing(given, "tuning");
  const auto start = std::chrono::steady_clock::now();
  Instance instance(space.searched(), size, InputKind::normal, 1, variant);
  DeviceVerifier verifier(space, instance, size, variant);
  GpuTimer timer(space, instance, sampler);
  const DeviceInfo& device = device_info();
  const auto problem = space.problem.make_problem(size, variant);
  Report report =
      tune(space, size, *problem, device, survivors(space, device), timer, &verifier, options);
  if (!report.problem.empty()) return report;
  // The key is that of the problem as users have it, with bases as far off as here.
  DevicePointers at;
  for (const TensorSpec& spec : problem->tensors()) {
    at.by_name[spec.name] = reinterpret_cast<void*>(
        static_cast<std::uintptr_t>(variant.misalign_elements) * dtype_bytes(spec.dtype));
  }
  report.entry.key = make_key(space, *problem, at, device);
  report.not_kept = cache.try_add(report.entry);
  if (report.not_kept.empty()) {
    if (const auto all = cache.find(report.entry.key))
      report.entry = *all;  // other shards' included
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Recording record(const Space& space, const std::vector<ReferenceEntry>& libraries, int rounds,
                 const std::function<void(const std::string&)>& progress, const Sampler& given) {
  const Sampler sampler = require_timing(given, "recording");
  Recording recording;
  recording.kernel = space.kernel;
  recording.device = device_info();
  recording.tokens = token_hash(space.source);
  recording.commit = source_commit().value_or("");
  recording.date = now_utc();
  for (const Candidate& each : space.candidates())
    recording.parameters[each.id()] = each.parameters;

  std::vector<std::pair<Size, bool>> shapes;
  for (const Size& size : space.training) shapes.push_back({size, false});
  for (const Size& size : space.held_out) shapes.push_back({size, true});
  for (const auto& [size, held_out] : shapes) {
    RecordedProblem recorded;
    recorded.size = size, recorded.held_out = held_out;
    const auto problem = space.problem.make_problem(size, {});
    recorded.bytes = problem->bytes(), recorded.flops = problem->flops();
    const auto say = [&, &size = size](const std::string& text) {
      progress(fmt::format("{} {}: {}", space.kernel, size_text(size), text));
    };
    say("drawing inputs");
    Instance instance(space.searched(), size, InputKind::normal, 1);
    constexpr double kFullBytes = 32.0 * (1 << 20);  // there are many to check
    DeviceVerifier verifier(space, instance, size, {}, kFullBytes);
    GpuTimer timer(space, instance, sampler);
    std::vector<std::size_t> alive;
    for (const Fate& fate : legality(space, *problem, recording.device)) {
      const std::string id = space[fate.candidate].id();
      std::string reason = fate.reason;
      if (fate.stage == Stage::timed) {
        say("checking " + id);
        reason = verifier.check(fate.candidate);
      }
      if (reason.empty()) {
        alive.push_back(fate.candidate);
      } else {
        recorded.configurations[id].failure = reason;
      }
    }
    for (const ReferenceEntry& library : libraries) {
      if (!library.supports(instance.problem(), recording.device)) continue;
      timer.libraries.push_back(
          {library.name, library.prepare(instance.problem(), instance.pointers())});
    }
    if (!alive.empty()) {
      say(fmt::format("timing {} configurations", alive.size()));
      timer.warm_up(alive.front());
      const std::vector<Samples> all = timer.time(alive, rounds);
      for (std::size_t i = 0; i < alive.size(); ++i) {
        recorded.configurations[space[alive[i]].id()] = all[i];
      }
      recorded.libraries = timer.library_samples;
      // The fastest is what everyone will look at: it has to be right at this very size.
      const auto us = [&](std::size_t c) {  // the median of no samples is infinite
        return median(recorded.configurations[space[c].id()].us);
      };
      while (true) {
        const std::size_t fastest = *std::ranges::min_element(alive, {}, us);
        if (std::isinf(us(fastest))) break;
        const std::string wrong = verifier.confirm(fastest);
        if (wrong.empty()) break;
        recorded.configurations[space[fastest].id()] = {{}, wrong};
      }
    }
    recording.problems.push_back(std::move(recorded));
  }
  return recording;
}

}  // namespace cookbook::tune
