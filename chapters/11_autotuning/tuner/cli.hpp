// SPDX-License-Identifier: MIT
/// @file
/// What a person types: tune, merge, replay, record - and the tables they read.
#pragma once

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chapters/11_autotuning/tuner/tuner.hpp"
#include "common/harness/report/result.hpp"

namespace cookbook::tune {

/// What `command` takes, for the help of the program that calls it.
constexpr const char* kCommands =
    "  tune [--kernel K] [--size 4096x4096x4096]... [--shard i/n] [--cache FILE]\n"
    "  merge OUT IN...\n"
    "  replay [--kernel K | --recording FILE] [--json FILE]\n"
    "  record FOLDER [K]...\n";

/// Handles the commands of kCommands as the first argument; nothing for other command lines.
/// `libraries` are recorded beside the space of that name. The result is the exit status: 0, 1 when
/// something failed, 2 for bad usage.
std::optional<int> command(const std::vector<const Space*>& spaces, int argc, char** argv,
                           const Libraries& libraries = {});

/// Tunes `space` for one size where the cache has nothing, and prints what it found; else prints
/// the entry. Returns false when no configuration is right.
bool tune_and_print(const Space& space, const Size& size, const TuneOptions& options,
                    const Cache& cache);

/// How a searcher did on a recording: looks until its best stays within 2 % of the best there is.
/// It sees the odd rounds; what a configuration really takes is the median of the even ones.
struct SearcherScore {
  std::string name;
  double median_looks = 0;  ///< infinity when most searches never get there
  double arrived = 0;       ///< share of the searches that do
  /// Mean slowdown (best so far over best of all) after 1, 2 ... looks: the curve of the figure.
  std::vector<double> slowdown;
};
std::vector<SearcherScore> score_searchers(const Space& space, const Recording& recording,
                                           int seeds = 25);
/// The same for a file: {"kernel", "device", "searchers": {name: {...}}}.
nlohmann::ordered_json searchers_json(const Space& space, const Recording& recording);

/// Geometric mean of ratios; 0 of none.
struct GeometricMean {
  double mean = 0;
  double worst = std::numeric_limits<double>::infinity();
  int count = 0;
  void add(double ratio);
};

/// Speeds over the recording's shapes. Survivors, the best fixed configuration and every shape's
/// winner are chosen on the odd rounds; all ratios are of the even ones.
struct Verdicts {
  GeometricMean tuned_over_fixed;                      ///< training shapes
  GeometricMean held_out_over_fixed;                   ///< held-out shapes
  GeometricMean tuned_over_default, model_over_fixed;  ///< all shapes
  GeometricMean tuned_over_library;                    ///< where one was recorded
  std::size_t fixed = 0;
};
Verdicts judge(const Space& space, const Recording& recording);

/// What the ladder says about tuning over several sizes: times of the levels `untuned`,
/// `best_fixed` and `tuned`, taken interleaved with the library after every search had ended.
struct Proof {
  std::string ladder, library;
  struct Row {
    Size size;
    bool held_out = false;
    double untuned = 0, fixed = 0, tuned = 0, library = 0;  ///< microseconds; 0: not timed
    Ratio over_fixed, over_library;                         ///< above 1: tuned is faster
  };
  std::vector<Row> rows;
  bool complete = false;  ///< all shapes of the space are among them
  GeometricMean over_untuned, over_fixed, over_library;
  /// What this chapter promises of the GEMM: 1.05 over the best fixed configuration on average,
  /// and nowhere under 0.98 of what would be launched without a search.
  bool kept() const {
    return over_fixed.mean >= 1.05 && over_fixed.worst >= 0.98 && over_untuned.worst >= 0.98;
  }
};
/// From the JSON of a chapter's run (docs/json.md), one for every ladder of `spaces` that was timed
/// at two sizes or more.
std::vector<Proof> proofs(const nlohmann::ordered_json& document,
                          const std::vector<const Space*>& spaces);
void print(const Proof& proof);

/// Prints the recording of `space` for this device, or that there is none. Returns it.
std::optional<Recording> print_recorded(const Space& space);

/// Prints a recording: every shape's winner against the default, the best fixed configuration and
/// the library, the survivors, the searchers compared.
void print_replay(const Space& space, const Recording& recording);

}  // namespace cookbook::tune
