// SPDX-License-Identifier: MIT
#include "common/tune/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/harness/console.hpp"
#include "common/harness/options.hpp"

namespace cookbook::tune {
namespace {

constexpr double kClose = 1.02;

// Arguments after the verb: options by name, the rest in order.
struct Arguments {
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> rest;

  Arguments(int argc, char** argv, const std::vector<std::string>& known) {
    for (int i = 2; i < argc; ++i) {
      const std::string name = argv[i];
      if (name.rfind("--", 0) != 0) {
        rest.push_back(name);
        continue;
      }
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw UsageError(fmt::format("{} takes {}, not {}", argv[1], fmt::join(known, ", "), name));
      }
      if (i + 1 == argc) throw UsageError(name + " needs a value");
      options.push_back({name, argv[++i]});
    }
  }
  std::vector<std::string> all(const std::string& name) const {
    std::vector<std::string> values;
    for (const auto& [key, value] : options) {
      if (key == name) values.push_back(value);
    }
    return values;
  }
  std::string get(const std::string& name, const std::string& otherwise = "") const {
    const auto values = all(name);
    return values.empty() ? otherwise : values.back();
  }
};

std::vector<const Space*> chosen(const std::vector<const Space*>& spaces,
                                 const std::string& kernel) {
  if (kernel.empty()) return spaces;
  std::vector<std::string> names;
  for (const Space* space : spaces) {
    if (space->kernel == kernel) return {space};
    names.push_back(space->kernel);
  }
  throw UsageError(fmt::format("no kernel `{}`; there are: {}", kernel, fmt::join(names, ", ")));
}

std::vector<std::string> ids_of(const Space& space) {
  std::vector<std::string> ids;
  for (const Candidate& each : space.candidates()) ids.push_back(each.id());
  return ids;
}

// What the tuner would launch for a recorded problem, and what everything took.
struct Outcome {
  std::size_t best = 0, tuned = 0, standard = 0, fixed = 0, model = 0;
  std::vector<double> us;  // by candidate
  double library = std::numeric_limits<double>::infinity();
  std::string library_name;
};

Outcome outcome(const Space& space, const Recording& recording, const RecordedProblem& problem,
                const Survivors& kept, std::size_t fixed) {
  Outcome o;
  for (const Candidate& each : space.candidates()) {
    const auto at = problem.configurations.find(each.id());
    o.us.push_back(at == problem.configurations.end() ? std::numeric_limits<double>::infinity()
                                                      : median(at->second.us));
  }
  const auto any = space.problem.make_problem(problem.size, {});
  std::vector<std::size_t> able = legal(space, *any, recording.device);
  std::erase_if(able, [&](std::size_t c) { return std::isinf(o.us[c]); });
  if (able.empty())
    throw std::runtime_error("no configuration was recorded for " + size_text(problem.size));
  auto least = [&](auto&& value) {
    return *std::min_element(able.begin(), able.end(),
                             [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
  };
  o.standard = able.front();
  o.best = least([&](std::size_t c) { return o.us[c]; });
  o.model = space.model ? least([&](std::size_t c) {
    return space.model(space[c].parameters, problem.size, recording.device);
  })
                        : o.standard;
  o.fixed = std::isinf(o.us[fixed]) ? o.standard : fixed;
  ReplayTimer timer(problem, ids_of(space));
  const Report report = tune(space, problem.size, *any, recording.device, kept, timer, nullptr, {});
  o.tuned = static_cast<std::size_t>(std::max(0, space.find(report.entry.winner())));
  for (const auto& [name, samples] : problem.libraries) {
    o.library = median(samples.us), o.library_name = name;
  }
  return o;
}

struct GeometricMean {
  double sum = 0;
  int n = 0;
  double worst = std::numeric_limits<double>::infinity();
  void add(double ratio) { sum += std::log(ratio), ++n, worst = std::min(worst, ratio); }
  double value() const { return n ? std::exp(sum / n) : 0; }
};

Survivors survivors_of(const Space& space, const Recording& recording) {
  return {shrink(recorded_times(space, recording), kMostSurvivors),
          "recorded on " + recording.device.name};
}

int run_tune(const std::vector<const Space*>& spaces, const Arguments& arguments) {
  TuneOptions options;
  Progress progress;
  options.progress = [&](const std::string& text) { progress.show(text); };
  options.shard = parse_shard(arguments.get("--shard", "0/1"));
  const Cache cache(arguments.get("--cache", Cache::default_file()));
  bool right = true;
  for (const Space* space : chosen(spaces, arguments.get("--kernel"))) {
    std::vector<Size> sizes;
    for (const std::string& text : arguments.all("--size")) {
      sizes.push_back(parse_size(space->problem, text));
    }
    if (sizes.empty()) sizes = space->training;
    for (const Size& size : sizes) right = tune_and_print(*space, size, options, cache) && right;
  }
  return right ? 0 : 1;
}

int run_merge(const Arguments& arguments) {
  if (arguments.rest.size() < 2) throw UsageError("merge takes OUT IN...");
  const Cache out(arguments.rest.front());
  for (std::size_t i = 1; i < arguments.rest.size(); ++i) out.merge(arguments.rest[i]);
  fmt::print("{}: {} entries\n", out.file(), out.entries().size());
  return 0;
}

int run_replay(const std::vector<const Space*>& spaces, const Arguments& arguments) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  bool any = false;
  for (const Space* space : chosen(spaces, arguments.get("--kernel"))) {
    std::optional<Recording> recording;
    if (const std::string file = arguments.get("--recording"); !file.empty()) {
      recording = read_recording(file);
      if (recording->kernel != space->kernel) continue;
    } else {
      recording = find_recording(*space, device_info().cc());
    }
    if (!recording) {
      fmt::print(
          "\n{}: no recording for compute capability {}.{} is in {}; on a GPU, "
          "chapter-11-record writes one.\n",
          space->kernel, device_info().cc_major, device_info().cc_minor, space->recordings);
      continue;
    }
    any = true;
    print_replay(*space, *recording);
    for (const SearcherScore& score : score_searchers(*space, *recording)) {
      json[space->kernel][score.name] = {{"median_looks", score.median_looks},
                                         {"worst_looks", score.worst_looks},
                                         {"slowdown", score.slowdown}};
    }
  }
  if (const std::string file = arguments.get("--json"); !file.empty() && any) {
    std::ofstream(file) << json.dump(1) << "\n";
  }
  return 0;
}

}  // namespace

bool tune_and_print(const Space& space, const Size& size, const TuneOptions& options,
                    const Cache& cache) {
  const auto problem = space.problem.make_problem(size, {});
  const Key key = make_key(space, *problem, {}, device_info());
  const auto entry = cache.find(key);
  if (entry && options.shard.count == 1) {
    const std::string winner = entry->winner();
    const auto at = entry->measured.find(winner);
    fmt::print("{} at {}: cache hit, {}{} ({})\n", space.kernel, size_text(size), winner,
               winner == entry->default_id ? " (the default)"
                                           : fmt::format(", {:.3f}x the default", at->second.ratio),
               cache.file());
    return true;
  }
  const Report report = tune_on_device(space, size, {}, options, cache);
  print(report, space);
  return report.problem.empty();
}

std::vector<SearcherScore> score_searchers(const Space& space, const Recording& recording,
                                           int seeds) {
  std::vector<SearcherScore> scores;
  for (const NamedSearcher& searcher : searchers()) {
    SearcherScore score;
    score.name = searcher.name;
    std::vector<double> needed;
    std::vector<double> sum;  // of slowdowns after so many looks
    int searches = 0;
    for (const RecordedProblem& problem : recording.problems) {
      const auto any = space.problem.make_problem(problem.size, {});
      Arena arena;
      arena.space = &space, arena.size = problem.size, arena.device = recording.device;
      std::map<std::size_t, double> us;
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t c : legal(space, *any, recording.device)) {
        const auto at = problem.configurations.find(space[c].id());
        if (at == problem.configurations.end() || at->second.us.empty()) continue;
        arena.candidates.push_back(c);
        us[c] = median(at->second.us);
        best = std::min(best, us[c]);
      }
      if (arena.candidates.empty()) continue;
      for (int seed = 1; seed <= seeds; ++seed) {
        arena.seed = static_cast<std::uint64_t>(seed);
        ReplayTimer timer(problem, ids_of(space));
        const Search search = searcher.run(arena, timer);
        double first = std::numeric_limits<double>::infinity();
        for (auto step = search.steps.rbegin(); step != search.steps.rend(); ++step) {
          if (us[step->best] > kClose * best) break;  // from here on it stays close
          first = step->looks;
        }
        needed.push_back(first);
        ++searches;
        const std::size_t longest = std::max(sum.size(), arena.candidates.size());
        sum.resize(longest, 0.0);
        std::size_t at = 0;
        for (std::size_t looks = 1; looks <= longest; ++looks) {
          while (at + 1 < search.steps.size() &&
                 search.steps[at + 1].looks <= static_cast<int>(looks))
            ++at;
          sum[looks - 1] += us[search.steps[at].best] / best;
        }
      }
    }
    std::sort(needed.begin(), needed.end());
    if (!needed.empty()) {
      score.median_looks = needed[needed.size() / 2], score.worst_looks = needed.back();
    }
    for (double total : sum) score.slowdown.push_back(total / searches);
    scores.push_back(std::move(score));
  }
  return scores;
}

Verdicts judge(const Space& space, const Recording& recording) {
  Verdicts v;
  v.fixed = best_fixed(recorded_times(space, recording));
  const Survivors kept = survivors_of(space, recording);
  GeometricMean training, held_out, standard, model, library;
  for (const RecordedProblem& problem : recording.problems) {
    const Outcome o = outcome(space, recording, problem, kept, v.fixed);
    (problem.held_out ? held_out : training).add(o.us[o.fixed] / o.us[o.tuned]);
    standard.add(o.us[o.standard] / o.us[o.tuned]);
    model.add(o.us[o.fixed] / o.us[o.model]);
    if (!std::isinf(o.library)) library.add(o.library / o.us[o.tuned]);
  }
  v.tuned_over_fixed = training.value(), v.worst_over_fixed = training.worst;
  v.held_out_over_fixed = held_out.value(), v.worst_held_out = held_out.worst;
  v.tuned_over_default = standard.value(), v.model_over_fixed = model.value();
  v.tuned_over_library = library.value();
  return v;
}

void print_replay(const Space& space, const Recording& recording) {
  const Survivors kept = survivors_of(space, recording);
  const Verdicts v = judge(space, recording);
  fmt::print("\n{}: replayed from {} ({}, driver {}, toolkit {})\n", space.kernel,
             recording.device.name, recording.date, recording.device.driver,
             recording.device.toolkit);
  fmt::print("  {} configurations in the code, {} survive on cc {}.{}:\n",
             space.candidates().size(), kept.indices.size(), recording.device.cc_major,
             recording.device.cc_minor);
  for (std::size_t c : kept.indices) fmt::print("    {}\n", space[c].id());
  fmt::print("  one configuration for all shapes would be: {}\n", space[v.fixed].id());
  fmt::print("  {:<18} {:>10} {:>9} {:>11} {:>9} {:>9}  {}\n", "size", "tuned us", "/default",
             "/best fixed", "/model", "/library", "tuned configuration");
  for (const RecordedProblem& problem : recording.problems) {
    const Outcome o = outcome(space, recording, problem, kept, v.fixed);
    const double us = o.us[o.tuned];
    fmt::print("  {:<18} {:>10.2f} {:>9.3f} {:>11.3f} {:>9.3f} {:>9}  {}{}\n",
               size_text(problem.size) + (problem.held_out ? " *" : ""), us, o.us[o.standard] / us,
               o.us[o.fixed] / us, o.us[o.model] / us,
               std::isinf(o.library) ? "" : fmt::format("{:.3f}", o.library / us),
               space[o.tuned].id(), o.tuned == o.standard ? " (default)" : "");
  }
  fmt::print(
      "  speed of the tuned kernel, geometric means (* held out, above 1: tuned is faster)\n"
      "    over the best fixed configuration: {:.3f} (worst {:.3f}), held out {:.3f} (worst "
      "{:.3f})\n    over the default: {:.3f}{}\n    the model alone over the best fixed "
      "configuration: {:.3f}\n",
      v.tuned_over_fixed, v.worst_over_fixed, v.held_out_over_fixed, v.worst_held_out,
      v.tuned_over_default,
      v.tuned_over_library > 0 ? fmt::format("; over the library: {:.3f}", v.tuned_over_library)
                               : "",
      v.model_over_fixed);
  fmt::print(
      "  looks until the best found is within 2 % of the best there is\n"
      "    {:<24} {:>7} {:>7}\n",
      "searcher", "median", "worst");
  for (const SearcherScore& score : score_searchers(space, recording)) {
    fmt::print("    {:<24} {:>7} {:>7}\n", score.name, score.median_looks, score.worst_looks);
  }
}

std::optional<int> command(const std::vector<const Space*>& spaces, int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  try {
    if (verb == "tune") {
      return run_tune(spaces, Arguments(argc, argv, {"--kernel", "--size", "--shard", "--cache"}));
    }
    if (verb == "merge") return run_merge(Arguments(argc, argv, {}));
    if (verb == "replay") {
      return run_replay(spaces, Arguments(argc, argv, {"--kernel", "--recording", "--json"}));
    }
    return std::nullopt;
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "{}: {}\n", verb, error.what());
    return 2;
  } catch (const UsageError& error) {
    fmt::print(stderr, "{}: {}\n", verb, error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", verb, error.what());
    return 1;
  }
}

}  // namespace cookbook::tune
