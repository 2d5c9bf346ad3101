// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/harness/report/console.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook::tune {
namespace {

constexpr double kClose = kLeastGain;

// What follows the verb on the command line.
struct Arguments {
  std::string kernel;                         // tune, replay; empty: all
  std::vector<std::string> sizes;             // tune
  std::string shard = "0/1";                  // tune
  std::string cache = Cache::default_file();  // tune
  std::string recording, json;                // replay
  std::string merged;                         // merge
  std::vector<std::string> parts;             // merge
  std::string folder;                         // record
  std::vector<std::string> kernels;           // record; empty: all
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

// The time of configuration `id` in a half of a recorded problem; nothing where it did not run.
std::vector<double> times_of(const RecordedProblem& problem, const std::string& id) {
  const auto at = problem.configurations.find(id);
  return at == problem.configurations.end() ? std::vector<double>{} : at->second.us;
}

// What the tuner would launch for a recorded problem: chosen on the odd rounds, scored on the even.
struct Outcome {
  std::size_t tuned = 0, standard = 0, fixed = 0, model = 0;
  std::vector<std::vector<double>> us;  // by candidate, even rounds
  std::vector<double> library;          // the same rounds

  double median_us(std::size_t c) const { return median(us[c]); }
  // How much faster `tuned` is: rounds pair, so what drifts during a recording cancels.
  double over(std::size_t base, std::size_t c) const {
    return base == c ? 1 : paired_ratio(us[base], us[c]).ratio;
  }
  double over_library() const {
    return library.empty() ? 0 : paired_ratio(library, us[tuned]).ratio;
  }
};

Outcome outcome(const Space& space, const DeviceInfo& device, const RecordedProblem& odd,
                const RecordedProblem& even, const Survivors& kept) {
  Outcome o;
  for (const std::string& id : space.ids()) o.us.push_back(times_of(even, id));
  const Size& size = odd.size;
  const auto any = space.problem.make_problem(size, {});
  std::vector<std::size_t> able = legal(space, *any, device);
  std::erase_if(able, [&](std::size_t c) { return o.us[c].empty(); });
  if (able.empty())
    throw std::runtime_error("no configuration was recorded for " + size_text(size));
  o.standard = o.model = able.front();
  if (space.model) {
    o.model = *std::ranges::min_element(
        able, {}, [&](std::size_t c) { return space.model(space[c].parameters, size, device); });
  }
  o.fixed = o.us[*kept.fixed].empty() ? o.standard : *kept.fixed;
  ReplayTimer timer(odd, space.ids());
  const Report report = tune(space, size, *any, device, kept, timer, nullptr, replay_options(odd));
  o.tuned = space.find(report.entry.winner()).value_or(0);
  for (const auto& [name, samples] : even.libraries) o.library = samples.us;
  return o;
}

// A recording, the choices made on its odd rounds, and their outcomes.
struct Judged {
  Survivors kept;
  std::vector<Outcome> outcomes;  // a problem of the recording each
};

Judged judged(const Space& space, const Recording& recording) {
  const Recording odd = only(Rounds::odd, recording), even = only(Rounds::even, recording);
  Judged j;
  j.kept = survivors(space, odd);
  for (std::size_t p = 0; p < odd.problems.size(); ++p) {
    j.outcomes.push_back(
        outcome(space, recording.device, odd.problems[p], even.problems[p], j.kept));
  }
  return j;
}

Verdicts verdicts(const Judged& j, const Recording& recording) {
  Verdicts v;
  v.fixed = *j.kept.fixed;
  for (std::size_t p = 0; p < j.outcomes.size(); ++p) {
    const Outcome& o = j.outcomes[p];
    (recording.problems[p].held_out ? v.held_out_over_fixed : v.tuned_over_fixed)
        .add(o.over(o.fixed, o.tuned));
    v.tuned_over_default.add(o.over(o.standard, o.tuned));
    v.model_over_fixed.add(o.over(o.fixed, o.model));
    if (!o.library.empty()) v.tuned_over_library.add(o.over_library());
  }
  return v;
}

int run_tune(const std::vector<const Space*>& spaces, const Arguments& arguments) {
  TuneOptions options;
  Progress progress;
  options.progress = [&](const std::string& text) { progress.show(text); };
  options.shard = parse_shard(arguments.shard);
  const Cache cache(arguments.cache);
  std::vector<std::pair<const Space*, Size>> searches;  // all parsed before the first one begins
  for (const Space* space : chosen(spaces, arguments.kernel)) {
    for (const std::string& text : arguments.sizes) {
      const Size size = parse_size(space->problem, text);
      require_memory(*space->problem.make_problem(size, {}), size);
      searches.push_back({space, size});
    }
    if (!arguments.sizes.empty()) continue;
    for (const Size& size : space->training) searches.push_back({space, size});
  }
  bool right = true;
  for (const auto& [space, size] : searches) {
    right = tune_and_print(*space, size, options, cache) && right;
  }
  return right ? 0 : 1;
}

int run_merge(const Arguments& arguments) {
  const Cache out(arguments.merged);
  for (const std::string& part : arguments.parts) out.merge(part);
  fmt::print("{}: {} entries\n", out.file(), out.entries().size());
  return 0;
}

int run_replay(const std::vector<const Space*>& spaces, const Arguments& arguments) {
  require_writable(arguments.json);
  std::optional<Recording> given;
  if (!arguments.recording.empty()) given = read_recording(arguments.recording);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Space* space : chosen(spaces, given ? given->kernel : arguments.kernel)) {
    if (given) print_replay(*space, *given);
    const std::optional<Recording> recording = given ? given : print_recorded(*space);
    if (recording && !arguments.json.empty()) {
      json.push_back(searchers_json(*space, *recording));
    }
  }
  if (!json.empty()) write_file(arguments.json, json.dump(1) + "\n");
  return 0;
}

// Measures whole spaces on this GPU into FOLDER/KERNEL_GPU.json.
int run_record(const std::vector<const Space*>& spaces, const Arguments& arguments,
               const Libraries& libraries) {
  std::vector<const Space*> wanted;
  for (const std::string& kernel : arguments.kernels) wanted.push_back(chosen(spaces, kernel)[0]);
  std::string gpu = device_info().name;
  for (char& c : gpu) c = c == ' ' ? '_' : static_cast<char>(std::tolower(c));
  for (const Space* space : wanted.empty() ? spaces : wanted) {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const std::string file = fmt::format("{}/{}_{}.json", arguments.folder, space->kernel, gpu);
    require_writable(file);
    std::vector<ReferenceEntry> beside;
    for (const auto& [kernel, library] : libraries) {
      if (kernel == space->kernel) beside.push_back(library);
    }
    constexpr int kRounds = 15;
    Progress progress;
    const Recording recording = record(*space, beside, kRounds, [&](const std::string& text) {
      progress.show(fmt::format("{:.0f} s  {}", seconds(), text));
    });
    write_recording(recording, file);
    progress.clear();
    fmt::print("{}: {:.1f} s\n", file, seconds());
    print_replay(*space, recording);
  }
  return 0;
}

}  // namespace

void GeometricMean::add(double ratio) {
  mean = count == 0 ? ratio : std::exp((count * std::log(mean) + std::log(ratio)) / (count + 1));
  worst = std::min(worst, ratio);
  ++count;
}

std::optional<Recording> print_recorded(const Space& space) {
  std::optional<Recording> recording = find_recording(space, device_info().cc());
  if (recording) {
    print_replay(space, *recording);
  } else {
    fmt::print(
        "\n{}: not recorded yet on compute capability {}.{}; on such a GPU, "
        "`chapter-11 record {} {}` writes it.\n",
        space.kernel, device_info().cc_major, device_info().cc_minor, space.recordings,
        space.kernel);
  }
  return recording;
}

bool tune_and_print(const Space& space, const Size& size, const TuneOptions& options,
                    const Cache& cache) {
  const auto start = std::chrono::steady_clock::now();
  const auto problem = space.problem.make_problem(size, {});
  const Key key = make_key(space, *problem, {}, device_info());
  const auto entry = cache.find(key);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (entry && options.shard.count == 1) {
    const std::string winner = entry->winner();
    const auto at = entry->measured.find(winner);
    fmt::print("{} at {}: cache hit in {:.1f} ms, {}{} ({})\n", space.kernel, size_text(size), ms,
               winner,
               winner == entry->default_id ? " (the default)"
                                           : fmt::format(", {:.3f}x the default", at->second.ratio),
               cache.file());
    return true;
  }
  const Report report = tune_on_device(space, size, {}, options, cache);
  if (options.progress) options.progress("");  // wipe the line: the report begins here
  print(report, space);
  if (!report.not_kept.empty()) {
    fmt::print(stderr, "autotune: {}; what was found is not kept\n", report.not_kept);
  }
  return report.problem.empty() && report.not_kept.empty();
}

std::vector<SearcherScore> score_searchers(const Space& space, const Recording& recording,
                                           int seeds) {
  std::vector<SearcherScore> scores;
  const Recording odd = only(Rounds::odd, recording), even = only(Rounds::even, recording);
  for (const NamedSearcher& searcher : searchers()) {
    SearcherScore score;
    score.name = searcher.name;
    std::vector<double> needed;  // looks, of every search
    std::vector<double> sum;     // of slowdowns after each look
    for (const RecordedProblem& problem : odd.problems) {
      const RecordedProblem& truth = *even.find(problem.size);
      const auto any = space.problem.make_problem(problem.size, {});
      Arena arena;
      arena.space = &space, arena.size = problem.size, arena.device = recording.device;
      std::map<std::size_t, double> us;
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t c : legal(space, *any, recording.device)) {
        const std::vector<double> times = times_of(truth, space[c].id());
        if (times.empty()) continue;
        arena.candidates.push_back(c);
        us[c] = median(times);
        best = std::min(best, us[c]);
      }
      if (arena.candidates.empty()) continue;
      for (int seed = 1; seed <= seeds; ++seed) {
        arena.seed = static_cast<std::uint64_t>(seed);
        ReplayTimer timer(problem, space.ids());
        const std::vector<Step> steps = searcher.run(arena, timer).steps;
        double first = std::numeric_limits<double>::infinity();
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
          if (us[step->best] > kClose * best) break;  // from here on it stays close
          first = step->looks;
        }
        needed.push_back(first);
        sum.resize(std::max(sum.size(), arena.candidates.size()), 0.0);
        auto step = steps.begin();
        for (std::size_t looks = 1; looks <= sum.size(); ++looks) {
          while (step + 1 != steps.end() && step[1].looks <= static_cast<int>(looks)) ++step;
          sum[looks - 1] += us[step->best] / best;
        }
      }
    }
    const auto searches = static_cast<double>(needed.size());
    std::ranges::sort(needed);
    if (!needed.empty()) {
      score.median_looks = needed[needed.size() / 2];
      const auto arrived = std::ranges::count_if(needed, [](double x) { return !std::isinf(x); });
      score.arrived = static_cast<double>(arrived) / searches;
    }
    for (double total : sum) score.slowdown.push_back(total / searches);
    scores.push_back(std::move(score));
  }
  return scores;
}

nlohmann::ordered_json searchers_json(const Space& space, const Recording& recording) {
  nlohmann::ordered_json json{{"kernel", space.kernel},
                              {"device", recording.device.name},
                              {"date", recording.date},
                              {"shapes", recording.problems.size()},
                              {"searchers", nlohmann::ordered_json::object()}};
  const auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
  for (const SearcherScore& score : score_searchers(space, recording)) {
    auto& to = json["searchers"][score.name];
    to["median_looks"] = std::isinf(score.median_looks)
                             ? nlohmann::ordered_json(nullptr)
                             : nlohmann::ordered_json(score.median_looks);
    to["arrived"] = rounded(score.arrived);
    to["slowdown"] = nlohmann::ordered_json::array();
    for (const double slowdown : score.slowdown) to["slowdown"].push_back(rounded(slowdown));
  }
  return json;
}

Verdicts judge(const Space& space, const Recording& recording) {
  return verdicts(judged(space, recording), recording);
}

void print_replay(const Space& space, const Recording& recording) {
  const Judged j = judged(space, recording);
  const Verdicts v = verdicts(j, recording);
  fmt::print("\n{}: replayed from {} ({}, driver {}, toolkit {})\n", space.kernel,
             recording.device.name, recording.date, recording.device.driver,
             recording.device.toolkit);
  fmt::print(
      "  Choices are made on the odd rounds of the recording and scored on the even ones, so that\n"
      "  luck does not count as speed. What would be launched anyway - the default, or the best\n"
      "  fixed configuration - gives way only to what is {:.0f} % faster, and beyond noise.\n",
      100 * (kLeastGain - 1));
  fmt::print("  {} configurations in the code, {} survive on cc {}.{}:\n",
             space.candidates().size(), j.kept.indices.size(), recording.device.cc_major,
             recording.device.cc_minor);
  for (const std::size_t c : j.kept.indices) {
    fmt::print("    {}{}{}\n", space[c].id(), c == j.kept.indices.front() ? "  (the default)" : "",
               c == j.kept.fixed ? "  (the best one for all shapes)" : "");
  }
  for (const Candidate& each : space.candidates()) {
    if (!each.illegal.empty()) fmt::print("    {}  illegal: {}\n", each.id(), each.illegal);
  }
  std::size_t width = 4;
  std::string library;
  for (const RecordedProblem& problem : recording.problems) {
    width = std::max(width, size_text(problem.size).size() + 2);
    if (!problem.libraries.empty()) library = problem.libraries.begin()->first;
  }
  const auto cell = [](const std::string& text) { return fmt::format("{:>11}", text); };
  const auto speed = [&](double ratio) { return cell(fmt::format("{:.3f}x", ratio)); };
  fmt::print("  {:<{}} {:>9}      speed of the tuned kernel over the\n", "", width, "tuned");
  fmt::print("  {:<{}} {:>9}{}{}{}{}   what it sets differently from the default\n", "size", width,
             "us", cell("default"), cell("best fixed"), cell("model's"),
             library.empty() ? "" : cell(library));
  for (std::size_t p = 0; p < j.outcomes.size(); ++p) {
    const Outcome& o = j.outcomes[p];
    const RecordedProblem& problem = recording.problems[p];
    std::string over_library = library.empty() ? "" : cell("");
    if (!o.library.empty()) over_library = speed(o.over_library());
    fmt::print("  {:<{}} {:>9.2f}{}{}{}{}   {}\n",
               size_text(problem.size) + (problem.held_out ? " *" : ""), width,
               o.median_us(o.tuned), speed(o.over(o.standard, o.tuned)),
               speed(o.over(o.fixed, o.tuned)), speed(o.over(o.model, o.tuned)), over_library,
               o.tuned == o.standard
                   ? "nothing"
                   : differences(space[o.standard].parameters, space[o.tuned].parameters));
  }
  fmt::print(
      "  * held out: no choice above has seen it. Geometric means (above 1: tuned is faster):\n"
      "    over the best fixed configuration: {:.3f} (worst {:.3f}), held out {:.3f} (worst "
      "{:.3f})\n    over the default: {:.3f}{}\n    the model alone, over the best fixed "
      "configuration: {:.3f}\n",
      v.tuned_over_fixed.mean, v.tuned_over_fixed.worst, v.held_out_over_fixed.mean,
      v.held_out_over_fixed.worst, v.tuned_over_default.mean,
      v.tuned_over_library.count
          ? fmt::format("; over the library: {:.3f}", v.tuned_over_library.mean)
          : "",
      v.model_over_fixed.mean);
  fmt::print(
      "  Searchers: looks (of {} samples each) until the best so far stays within 2 % of the "
      "best\n    {:<24} {:>12} {:>22}\n",
      Arena().rounds, "searcher", "median looks", "searches that get there");
  for (const SearcherScore& score : score_searchers(space, recording)) {
    fmt::print("    {:<24} {:>12} {:>21.0f} %\n", score.name,
               std::isinf(score.median_looks) ? "never" : fmt::format("{}", score.median_looks),
               100 * score.arrived);
  }
}

std::vector<Proof> proofs(const nlohmann::ordered_json& document,
                          const std::vector<const Space*>& spaces) {
  std::vector<Proof> all;
  for (const Space* space : spaces) {
    Proof proof;
    proof.ladder = space->kernel;
    for (const auto& run : document.at("runs")) {
      if (run.at("ladder") != space->kernel) continue;
      Proof::Row row;
      row.size = run.at("problem").at("size").get<Size>();
      row.held_out = std::ranges::count(space->held_out, row.size) > 0;
      const auto ratio_of = [](const auto& json) {
        return json.is_null() ? Ratio{} : Ratio{json.at("ratio"), json.at("low"), json.at("high")};
      };
      for (const auto& level : run.at("levels")) {
        if (level.at("time_us").is_null()) continue;
        const std::string name = level.at("name");
        const double us = level.at("time_us").at("median");
        if (name == "untuned") row.untuned = us;
        if (name == "best_fixed") row.fixed = us;
        if (name != "tuned") continue;
        row.tuned = us;
        row.over_fixed = ratio_of(level.at("vs_previous"));
        row.over_library = ratio_of(level.at("vs_reference"));
      }
      for (const auto& reference : run.at("references")) {
        if (reference.at("time_us").is_null()) continue;
        row.library = reference.at("time_us").at("median"), proof.library = reference.at("name");
      }
      // Without all three levels there is nothing to compare.
      if (!(row.untuned > 0 && row.fixed > 0 && row.tuned > 0 && row.over_fixed.ratio > 0))
        continue;
      proof.over_untuned.add(row.untuned / row.tuned);
      proof.over_fixed.add(row.over_fixed.ratio);
      if (row.over_library.ratio > 0) proof.over_library.add(row.over_library.ratio);
      proof.rows.push_back(row);
    }
    std::vector<Size> wanted = space->training;
    wanted.insert(wanted.end(), space->held_out.begin(), space->held_out.end());
    proof.complete = std::ranges::all_of(wanted, [&](const Size& size) {
      return std::ranges::count(proof.rows, size, &Proof::Row::size) > 0;
    });
    if (proof.rows.size() >= 2) all.push_back(std::move(proof));
  }
  return all;
}

void print(const Proof& proof) {
  std::size_t width = 4;
  for (const Proof::Row& row : proof.rows) width = std::max(width, size_text(row.size).size() + 2);
  const bool library = !proof.library.empty();
  fmt::print("\n{}: was it worth it? Timed after the searches, all of a size interleaved\n",
             proof.ladder);
  fmt::print("  {:<{}} {:>11} {:>13} {:>9}{}   {:<24}{}\n", "size", width, "untuned us",
             "best fixed us", "tuned us",
             library ? fmt::format(" {:>10}", proof.library + " us") : "", "tuned over best fixed",
             library ? "tuned over " + proof.library : "");
  for (const Proof::Row& row : proof.rows) {
    const auto ratio = [](const Ratio& r) {
      return r.ratio > 0 ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", r.ratio, r.low, r.high)
                         : std::string();
    };
    fmt::print("  {:<{}} {:>11.2f} {:>13.2f} {:>9.2f}{}   {:<24}{}\n",
               size_text(row.size) + (row.held_out ? " *" : ""), width, row.untuned, row.fixed,
               row.tuned, library ? fmt::format(" {:>10.2f}", row.library) : "",
               ratio(row.over_fixed), library ? ratio(row.over_library) : "");
  }
  fmt::print(
      "  Geometric means over {} sizes (above 1: tuned is faster): over the best fixed "
      "configuration {:.3f}, worst {:.3f}; over untuned {:.3f}, worst {:.3f}{}\n",
      proof.rows.size(), proof.over_fixed.mean, proof.over_fixed.worst, proof.over_untuned.mean,
      proof.over_untuned.worst,
      proof.over_library.mean > 0
          ? fmt::format("; over {} {:.3f}", proof.library, proof.over_library.mean)
          : "");
  if (proof.ladder == "gemm" && proof.complete) {
    fmt::print(
        "  Held to 1.05 over the best fixed configuration, and no size under 0.98 of it or of "
        "untuned: {}.\n",
        proof.kept() ? "kept" : "broken");
  }
}

std::optional<int> command(const std::vector<const Space*>& spaces, int argc, char** argv,
                           const Libraries& libraries) {
  Arguments arguments;
  CLI::App app{"Searches configurations, and keeps what it finds in a cache.", "chapter-11"};
  app.require_subcommand(1);
  CLI::App* tune = app.add_subcommand("tune", "search where the cache has nothing");
  tune->add_option("--kernel", arguments.kernel, "only this kernel");
  tune->add_option("--size", arguments.sizes,
                   "a size, such as 4096x4096x4096 (repeatable); all that the chapter trains on")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  tune->add_option("--shard", arguments.shard, "i/n: only every n-th configuration, from i on");
  tune->add_option("--cache", arguments.cache, "the cache, a JSON file")->capture_default_str();
  CLI::App* merge = app.add_subcommand("merge", "join caches");
  merge->add_option("OUT", arguments.merged, "the cache that takes the entries")->required();
  merge->add_option("IN", arguments.parts, "caches to take them from")->required();
  CLI::App* replay = app.add_subcommand("replay", "searchers compared on what a GPU recorded");
  CLI::Option* kernel = replay->add_option("--kernel", arguments.kernel, "only this kernel");
  replay->add_option("--recording", arguments.recording, "this recording, not the chapter's own")
      ->excludes(kernel);
  replay->add_option("--json", arguments.json, "write how the searchers did to this file");
  CLI::App* record = app.add_subcommand("record", "measure whole spaces on this GPU, for replays");
  record->add_option("FOLDER", arguments.folder, "gets a file KERNEL_GPU.json each")->required();
  record->add_option("KERNEL", arguments.kernels, "only these kernels");
  const std::string verb = argc > 1 ? argv[1] : "";
  const auto is_verb = [&](const CLI::App* each) { return each->get_name() == verb; };
  if (app.get_subcommands(is_verb).empty()) return std::nullopt;
  try {
    app.parse(argc, argv);
    if (*tune) return run_tune(spaces, arguments);
    if (*record) return run_record(spaces, arguments, libraries);
    return *merge ? run_merge(arguments) : run_replay(spaces, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "{}: {} (see {} --help)\n", verb, error.what(), verb);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", verb, error.what());
    const bool bad_usage = dynamic_cast<const std::invalid_argument*>(&error) ||
                           dynamic_cast<const UsageError*>(&error);
    return bad_usage ? 2 : 1;
  }
}

}  // namespace cookbook::tune
