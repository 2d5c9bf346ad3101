// SPDX-License-Identifier: MIT
#include "common/harness/run/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "common/backend/whole_number.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/run/request.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/settings.hpp"
#endif

namespace cookbook {
namespace {

// What is wrong with `text` as the number of an exercise; "" if nothing is.
std::string why_no_exercise(const Chapter& chapter, const std::string& text) {
  const auto count = static_cast<std::int64_t>(chapter.exercises.size());
  if (count == 0) return "this chapter has no graded exercise";
  const auto number = whole_number<std::int64_t>(text);
  if (number && *number >= 1 && *number <= count) return "";
  return fmt::format("takes {}; got '{}'",
                     count == 1   ? "1"
                     : count == 2 ? "1 or 2"
                                  : fmt::format("1 to {}", count),
                     text);
}

std::string kind_names() {
  std::string names;
  for (const InputKind kind : all_input_kinds()) {
    names += (names.empty() ? "" : ", ") + std::string(input_kind_name(kind));
  }
  return names;
}

// Of --pitch or --base, as typed: (tensor, elements); of all tensors: ("", elements).
std::pair<std::string, std::int64_t> tensor_number(const char* option, const std::string& text,
                                                   const std::vector<TensorSpec>& tensors) {
  const std::size_t equals = text.find('=');
  const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
  const auto number = whole_number<std::int64_t>(text.substr(name.size() + !name.empty()));
  std::vector<std::string> names;
  for (const TensorSpec& spec : tensors) names.push_back(spec.name);
  const bool known = equals == std::string::npos || std::count(names.begin(), names.end(), name);
  if (!known || !number || *number < 0 || *number > std::int64_t{1} << 40) {
    throw UsageError(
        fmt::format("{} takes a whole number of elements, such as 5 or {}=5 (tensors: "
                    "{}); got '{}'",
                    option, names.front(), fmt::join(names, ", "), text));
  }
  return {name, *number};
}

// How one program of a chapter asks another: this, and options as JSON.
constexpr const char* kRequest = "--request";

}  // namespace

std::optional<int> parse_options(const Chapter& chapter, int argc, char** argv, Options& options) {
  CLI::App app{fmt::format("{}: {}. Checks every level, benchmarks it on a GPU, checks its "
                           "claims and prints the ladder.",
                           chapter.heading(), chapter.title),
               chapter.program()};
  app.add_flag("--list", options.list, "list the levels with what each changes");
  app.add_option("--level", options.levels, "only this level, by number or name (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--size", options.sizes, "problem size, such as 4096 or 4096x1024 (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--ladder", options.ladder, "only this ladder of the chapter");
  app.add_flag("--all", options.all,
               "a table for every ladder; by default the first has one, the others have a line");
  app.add_flag("--check", options.check, "correctness and claims only, no timing");
  app.add_flag("--explain", options.explain,
               "per source line: requests, sectors, wavefronts, races (SIMT backend)");
  app.add_option("--draw", options.draw,
                 "with --explain: draw the worst lines' requests, lane by lane, into this folder")
      ->type_name("FOLDER")
      ->needs(app.get_option("--explain"));
  std::vector<CLI::Option*> of_case;
  of_case.push_back(app.add_option(
      "--inputs", options.inputs,
      fmt::format("inputs of --check and --explain: {} (default normal)", kind_names())));
  of_case.back()->check([](const std::string& text) {
    return kind_named(text) ? "" : fmt::format("takes {}; got '{}'", kind_names(), text);
  });
  for (const auto& [name, value, help] :
       {std::tuple{"--pitch", &options.pitches, "elements added to the pitch"},
        std::tuple{"--base", &options.bases, "elements by which the base address is moved"}}) {
    of_case.push_back(app.add_option(name, *value,
                                     fmt::format("with --check and --explain: {}, such as 5, or "
                                                 "in=5 for one tensor (repeatable)",
                                                 help)));
    of_case.back()->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  app.add_flag("--no-trace", options.no_trace, "do not start the traced executable");
  CLI::Option* exercise =
      app.add_option("--exercise", options.exercise, "grade exercise K of this chapter")
          ->check([&chapter](const std::string& text) { return why_no_exercise(chapter, text); });
  app.add_flag("--describe", options.describe,
               "print an exercise's file and sizes as JSON and run nothing (for ./run assignment)")
      ->needs(exercise);
  CLI::Option* profile =
      app.add_flag("--profile", options.profile,
                   "run every level of one ladder once, unchecked: for a profiler (./run profile)");
  app.add_flag(
         "--energy", options.energy,
         "with --profile: run each level for half a second instead, and measure joules (NVML)")
      ->needs(profile);
  app.add_option("--json", options.json, "write machine-readable results to this file");
  CLI::Option* launches =
      app.add_option("--launches", options.launches,
                     "write what every level launches at its full size to this file, and run "
                     "nothing (SIMT backend)");
  CLI::Option* timeline = app.add_option(
      "--timeline", options.timeline,
      "record what each warp of one level does, and write a trace for Perfetto to this file");
  // Options that choose levels and what is done with them. They must not be ignored silently.
  const auto excludes = [&app](CLI::Option* one, const std::vector<std::string>& others) {
    for (const char* other : {"--list", "--all", "--check", "--explain", "--no-trace"}) {
      one->excludes(app.get_option(other));
    }
    for (const std::string& other : others) one->excludes(app.get_option(other));
  };
  excludes(exercise, {"--level", "--ladder"});
  excludes(timeline, {"--exercise", "--json"});
  excludes(profile, {"--exercise", "--timeline"});
  excludes(launches, {"--exercise", "--json", "--profile", "--timeline"});
  for (CLI::Option* each : of_case) {
    for (CLI::Option* other : {exercise, profile, launches, timeline}) each->excludes(other);
  }
  // By default CLI11 wraps -1, and reads 010 as 8.
  const auto whole = [](const char* name, auto& value, std::uint64_t most, const char* takes) {
    return [=, &value](const std::string& text) {
      const auto number = whole_number<std::uint64_t>(text);
      if (!number || *number > most) {
        throw CLI::ValidationError(name,
                                   fmt::format("takes a whole number {}; got '{}'", takes, text));
      }
      value = *number;
    };
  };
  app.add_option_function<std::string>(
         "--seed", whole("--seed", options.seed, UINT64_MAX, "from 0 to 2^64 - 1"),
         "seed of the inputs (printed, default 1)")
      ->type_name("UINT");
  app.add_option_function<double>(
         "--seconds",
         [&options](double seconds) {
           if (!(seconds > 0 && seconds <= 1000)) {
             throw CLI::ValidationError("--seconds", "takes more than 0, and up to 1000");
           }
           options.seconds = seconds;
         },
         "time every size for so long, cold only: for many sizes (default 2.5, and warm as well)")
      ->excludes(exercise)
      ->excludes(profile)
      ->excludes(timeline);
  app.add_flag("--in-process", options.in_process,
               "SIMT: run kernels in this process, for a debugger; a crash ends the run, and there "
               "is no time limit");
  app.add_option_function<std::string>(
         "--time-limit",
         whole("--time-limit", options.time_limit, 1000000, "of seconds up to 1000000"),
         "SIMT: a kernel hangs when none of its threads finishes for so long; 0: no limit "
         "(default 60, and more at large sizes)")
      ->type_name("SECONDS");
  app.footer("Google Benchmark's --benchmark_* options are passed through on the CUDA backend.");
  std::vector<std::string> arguments;
  for (int i = argc - 1; i >= 1; --i) {  // CLI11 takes them in reverse
    const std::string argument = argv[i];
    if (argument.rfind("--benchmark_", 0) == 0) {
      options.benchmark_arguments.insert(options.benchmark_arguments.begin(), argument);
    } else {
      arguments.push_back(argument);
    }
  }
  try {
    if (argc == 3 && argv[1] == std::string(kRequest)) {
      options = nlohmann::json::parse(argv[2]);
    } else {
      app.parse(arguments);
    }
  } catch (const nlohmann::json::exception& error) {
    fmt::print(stderr, "{}: {}: {}\n", chapter.program(), kRequest, error.what());
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "{}: {} (see --help)\n", chapter.program(), error.what());
    return 2;
  }
#if COOKBOOK_SIMT
  try {
    simt::check_environment();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", chapter.program(), error.what());
    return 2;
  }
#endif
  return std::nullopt;
}

int run_request(const std::string& program, const Options& options) {
  return run_program({program, kRequest, nlohmann::json(options).dump()});
}

nlohmann::ordered_json run_for_json(const std::string& program, Options options) {
  options.json = std::filesystem::temp_directory_path() / "cookbook-request-XXXXXX";
  const int file = mkstemp(options.json.data());
  if (file < 0) throw std::runtime_error("cannot create a temporary file in " + options.json);
  close(file);
  const int status = run_request(program, options);
  std::stringstream text;
  text << std::ifstream(options.json).rdbuf();
  std::filesystem::remove(options.json);
  if ((status != 0 && status != 1 && status != 3) || text.str().empty()) {
    throw std::runtime_error(fmt::format("{} ended with status {}{}", program, status,
                                         text.str().empty() ? " and wrote no result" : ""));
  }
  return nlohmann::ordered_json::parse(text.str());
}

std::vector<const Ladder*> select_ladders(const Chapter& chapter, const Options& options) {
  std::vector<const Ladder*> selected;
  std::vector<std::string> names;
  for (const Ladder& ladder : chapter.ladders) {
    names.push_back(ladder.name);
    if (options.ladder.empty() || options.ladder == ladder.name) selected.push_back(&ladder);
  }
  if (selected.empty()) {
    throw UsageError(fmt::format("no ladder '{}'; this chapter has: {}", options.ladder,
                                 fmt::join(names, ", ")));
  }
  return selected;
}

std::vector<int> select_levels(const Ladder& ladder, const Options& options) {
  std::vector<int> selected;
  const int count = static_cast<int>(ladder.levels.size());
  if (options.levels.empty()) {
    for (int i = 0; i < count; ++i) selected.push_back(i);
    return selected;
  }
  for (const std::string& wanted : options.levels) {
    int found = -1;
    if (const auto number = whole_number<std::int64_t>(wanted)) {
      if (*number >= 0 && *number < count) found = static_cast<int>(*number);
    } else if (const LevelEntry* level = ladder.find(wanted)) {
      found = static_cast<int>(level - ladder.levels.data());
    }
    if (found < 0) {
      std::vector<std::string> names;
      for (int i = 0; i < count; ++i) {
        names.push_back(fmt::format("{} {}", i, ladder.levels[i].name));
      }
      throw UsageError(fmt::format("no level '{}' in ladder {}; it has: {}", wanted, ladder.name,
                                   fmt::join(names, ", ")));
    }
    selected.push_back(found);
  }
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());
  return selected;
}

Size parse_size(const Ladder& ladder, const std::string& text, std::int64_t least) {
  const std::string accepted =
      fmt::format("--size takes {} {}whole number{} ({}), such as {}; got '{}'", ladder.dims.size(),
                  least > 0 ? "positive " : "", ladder.dims.size() == 1 ? "" : "s joined by x",
                  fmt::join(ladder.dims, " x "), size_text(ladder.gpu_size), text);
  Size size = joined_numbers(text, std::int64_t{1} << 40, least);
  if (size.size() == 1) size.resize(ladder.dims.size(), size[0]);
  if (size.size() != ladder.dims.size()) throw UsageError(accepted);
  return size;
}

std::optional<InputKind> kind_named(const std::string& name) {
  for (const InputKind kind : all_input_kinds()) {
    if (name == input_kind_name(kind)) return kind;
  }
  return std::nullopt;
}

Variant parse_variant(const Ladder& ladder, const Options& options) {
  Variant variant;
  if (options.pitches.empty() && options.bases.empty()) return variant;
  const auto tensors = ladder.make_problem(ladder.trace_size, {})->tensors();
  const auto take = [&](const char* option, const std::vector<std::string>& texts,
                        std::int64_t Variant::*of_all, std::int64_t Layout::*of_one) {
    for (const std::string& text : texts) {
      const auto [name, number] = tensor_number(option, text, tensors);
      for (const TensorSpec& spec : tensors) {
        if (name.empty() || name == spec.name) variant.tensors[spec.name].*of_one = number;
      }
      if (name.empty()) variant.*of_all = number;
    }
  };
  take("--pitch", options.pitches, &Variant::extra_pitch, &Layout::extra_pitch);
  take("--base", options.bases, &Variant::misalign_elements, &Layout::misalign_elements);
  return variant;
}

void require_memory(const AnyProblem& problem, const Size& size) {
  double bytes = 0;  // not spec.bytes(): a mistyped size overflows its integers
  for (const TensorSpec& spec : problem.tensors()) {
    if (spec.rows > 0) {
      bytes += (static_cast<double>(spec.rows - 1) * static_cast<double>(spec.pitch) +
                static_cast<double>(spec.cols)) *
               static_cast<double>(dtype_bytes(spec.dtype));
    }
  }
  const double available = static_cast<double>(device_info().memory_bytes) * 0.9;
  if (bytes > available) {
    throw UsageError(fmt::format("size {} needs {:.1f} GiB of buffers; {:.1f} GiB can be used",
                                 size_text(size), bytes / (1 << 30), available / (1 << 30)));
  }
}

void require_writable(const std::string& file) {
  if (file.empty()) return;
  std::error_code error;
  const bool was_there = exists(std::filesystem::symlink_status(file, error));
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  errno = 0;
  const bool opens = std::ofstream(file, std::ios::app).is_open();
  if (!opens) {
    const std::string why = error ? error.message() : std::strerror(errno);
    throw UsageError(fmt::format("cannot write {}: {}", file, why));
  }
  if (!was_there) std::filesystem::remove(file, error);
}

void write_file(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("could not write all of " + file);
}

}  // namespace cookbook
