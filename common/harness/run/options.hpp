// SPDX-License-Identifier: MIT
// Command-line options of a chapter, parsed and validated before anything is allocated.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/inputs.hpp"

namespace cookbook {

struct Options {
  bool list = false, check = false, explain = false, no_trace = false;
  bool all = false;                         ///< a table for every ladder, not only for the first
  std::vector<std::string> levels;          ///< names or numbers; empty: all
  std::vector<std::string> sizes;           ///< as typed; each becomes a run
  std::vector<std::string> pitches, bases;  ///< as typed: "5" or "in=5"
  std::string inputs;                       ///< the name of an InputKind; empty: normal
  std::string ladder, json;
  std::string launches;   ///< the file for what levels launch; empty: none
  bool profile = false;   ///< run each level once, for a profiler
  bool energy = false;    ///< with `profile`: without one, and for joules per launch
  std::string draw;       ///< with `explain`: the folder for pictures; empty: none
  std::string timeline;   ///< the file for a timeline; empty: none
  int exercise = 0;       ///< 1, 2 ... ; 0: none
  bool describe = false;  ///< with `exercise`: only say what it is
  std::uint64_t seed = 1;
  std::optional<double> seconds;                 ///< of cold timing per size; nothing else is timed
  bool in_process = false;                       ///< kernels in this process
  std::optional<std::uint64_t> time_limit;       ///< seconds; 0: none
  std::vector<std::string> benchmark_arguments;  ///< --benchmark_* as given

  bool operator==(const Options&) const = default;
};

/// Runs another program of the chapter with these options: its exit status.
int run_request(const std::string& program, const Options& options);
/// The same, for the JSON that it writes. Throws std::runtime_error when it cannot be started, ends
/// with anything but 0, 1 or 3, or writes nothing.
nlohmann::ordered_json run_for_json(const std::string& program, Options options);

/// Bad usage: one line for the user, exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses argv, and checks the environment variables of the backend. Returns an exit status if the
/// program must end at once (--help or bad usage, already reported), nothing otherwise.
std::optional<int> parse_options(const Chapter& chapter, int argc, char** argv, Options& options);

/// The ladders that the options select; throws UsageError naming the ones there are.
std::vector<const Ladder*> select_ladders(const Chapter& chapter, const Options& options);
/// Indices of the levels of `ladder` that the options select; throws UsageError.
std::vector<int> select_levels(const Ladder& ladder, const Options& options);
/// Parses "4096" or "4096x1024" for `ladder`, of extents of at least `least`; throws UsageError
/// saying what is accepted.
Size parse_size(const Ladder& ladder, const std::string& text, std::int64_t least = 1);
/// The kind of inputs of this name.
std::optional<InputKind> kind_named(const std::string& name);
/// What --pitch and --base ask for; throws UsageError naming the tensors.
Variant parse_variant(const Ladder& ladder, const Options& options);
/// Throws UsageError if the buffers of `problem` do not fit in the device's memory.
void require_memory(const AnyProblem& problem, const Size& size);

/// Throws UsageError if `file` cannot be written; an empty name means that nothing will be written.
/// Called when everything else is right and before anything runs, so that hours of results are not
/// lost. Makes missing folders; does not change the file.
void require_writable(const std::string& file);
/// Writes a results file whole; throws std::runtime_error where that fails.
void write_file(const std::string& file, const std::string& text);

}  // namespace cookbook
