// SPDX-License-Identifier: MIT
#include "common/harness/run/arguments.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "common/backend/whole_number.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();

}  // namespace

void refuse_argument(char** argv, const std::string& accepted, const std::string& got) {
  const std::string name = std::filesystem::path(argv[0]).filename();
  std::fprintf(stderr, "%s: takes %s; got '%s'\n", name.c_str(), accepted.c_str(), got.c_str());
  std::exit(2);
}

void take_no_arguments(int argc, char** argv) {
  if (argc > 1) refuse_argument(argv, "no arguments", argv[1]);
}

std::optional<std::string> json_argument(int argc, char** argv) {
  if (argc != 3 || argv[1] != std::string_view("--json")) return std::nullopt;
  try {
    require_writable(argv[2]);
  } catch (const UsageError& error) {
    refuse_argument(argv, "--json FILE", error.what());
  }
  return argv[2];
}

std::optional<std::int64_t> positive_number(std::string_view text) {
  const auto numbers = joined_numbers(text, kMostRows);
  if (numbers.size() != 1) return std::nullopt;
  return numbers[0];
}

std::vector<std::int64_t> joined_numbers(std::string_view text, std::int64_t most,
                                         std::int64_t least) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const auto number = whole_number<std::int64_t>(text.substr(at, end - at));
    if (!number || *number < least || *number > most) return {};
    numbers.push_back(*number);
    at = end + 1;
  }
  return numbers;
}

// `argv[first]` and the two after it as M, N and K.
static std::vector<std::int64_t> product_size(int argc, char** argv, int first) {
  std::vector<std::int64_t> size;
  std::string got;
  for (int i = first; i < first + 3; ++i) {
    if (i < argc) got += (got.empty() ? "" : " ") + std::string(argv[i]);
    if (const auto number = i < argc ? positive_number(argv[i]) : std::nullopt) {
      size.push_back(*number);
    }
  }
  if (size.size() != 3) refuse_argument(argv, "[M N K]...", got);
  return size;
}

std::vector<std::vector<std::int64_t>> product_sizes(
    int argc, char** argv, std::vector<std::vector<std::int64_t>> otherwise) {
  if (argc <= 1) return otherwise;
  std::vector<std::vector<std::int64_t>> sizes;
  for (int i = 1; i < argc; i += 3) sizes.push_back(product_size(argc, argv, i));
  return sizes;
}

std::vector<std::vector<std::int64_t>> joined_sizes(
    int argc, char** argv, std::vector<std::vector<std::int64_t>> otherwise) {
  if (argc <= 1) return otherwise;
  std::vector<std::vector<std::int64_t>> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(joined_numbers(argv[i], kMostRows));
    if (sizes.back().size() == 1) sizes.back().resize(3, sizes.back()[0]);
    if (sizes.back().size() != 3) {
      refuse_argument(argv, "sizes such as 4096 or 4096x4096x64", argv[i]);
    }
  }
  return sizes;
}

}  // namespace cookbook
