// SPDX-License-Identifier: MIT
#include "common/harness/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

namespace cookbook {
namespace {

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string size_text(const Size& size) { return fmt::format("{}", fmt::join(size, "x")); }

std::optional<int> parse_options(const Chapter& chapter, int argc, char** argv, Options& options) {
  CLI::App app{fmt::format("Chapter {}: {}. Checks every level, benchmarks it on a GPU, checks its "
                           "claims and prints the ladder.",
                           chapter.number, chapter.title),
               fmt::format("chapter-{}", chapter.number)};
  app.add_flag("--list", options.list, "list the levels with what each changes");
  app.add_option("--level", options.levels, "only this level, by number or name (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--size", options.sizes, "problem size, such as 4096 or 4096x1024 (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--ladder", options.ladder, "only this ladder of the chapter");
  app.add_flag("--check", options.check, "correctness and claims only, no timing");
  app.add_flag("--explain", options.explain,
               "per source line: requests, sectors, wavefronts, races (SIMT backend)");
  app.add_flag("--no-trace", options.no_trace, "do not start the traced executable");
  app.add_option("--exercise", options.exercise, "grade exercise K of this chapter")
      ->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "write machine-readable results to this file");
  app.add_option("--seed", options.seed, "seed of the inputs (printed, default 1)");
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
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "chapter-{}: {} (see --help)\n", chapter.number, error.what());
    return 2;
  }
  return std::nullopt;
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
    if (const auto number = parse_number(wanted)) {
      if (*number >= 0 && *number < count) found = static_cast<int>(*number);
    } else {
      for (int i = 0; i < count; ++i) {
        if (ladder.levels[i].name == wanted) found = i;
      }
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

Size parse_size(const Ladder& ladder, const std::string& text) {
  const std::string accepted =
      fmt::format("--size takes {} positive whole number{} ({}), such as {}; got '{}'",
                  ladder.dims.size(), ladder.dims.size() == 1 ? "" : "s joined by x",
                  fmt::join(ladder.dims, " x "), size_text(ladder.gpu_size), text);
  Size size;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const auto number = parse_number(std::string_view(text).substr(at, end - at));
    if (!number || *number <= 0 || *number > (std::int64_t{1} << 40)) throw UsageError(accepted);
    size.push_back(*number);
    at = end + 1;
  }
  if (size.size() == 1) size.resize(ladder.dims.size(), size[0]);
  if (size.size() != ladder.dims.size()) throw UsageError(accepted);
  return size;
}

}  // namespace cookbook
