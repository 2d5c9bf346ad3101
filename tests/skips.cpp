// SPDX-License-Identifier: MIT
#include "tests/skips.hpp"

#include <fmt/format.h>

#include <cctype>
#include <fstream>

namespace cookbook {
namespace {

constexpr const char* kHeader =
    "# SPDX-License-Identifier: MIT\n"
    "# Written by COOKBOOK_WRITE_SKIPS=1 and this chapter's levels-test: see tests/skips.hpp.\n";

// "0-3 7 9-10"
std::string ranges(const std::vector<int>& cases) {
  std::string text;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < cases.size() && cases[last + 1] == cases[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : " ", cases[i]);
    if (last > i) text += fmt::format("-{}", cases[last]);
    i = last;
  }
  return text;
}

std::map<std::string, std::string> as_listed(const Skips::OfTest& skipped) {
  std::map<std::string, std::string> text;
  for (const auto& [reason, cases] : skipped) text[reason] = ranges(cases);
  return text;
}

}  // namespace

std::string without_numbers(const std::string& reason) {
  std::string text;
  for (const char c : reason) {
    if (!std::isdigit(static_cast<unsigned char>(c))) {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

Skips::Skips(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t level_end = line.find(' ');
    auto& level = listed_[line.substr(0, level_end)];
    if (level_end == std::string::npos) continue;
    const std::size_t test_end = line.find(' ', level_end + 1);
    const std::size_t cases_end = line.find(": ", test_end + 1);
    level[line.substr(level_end + 1, test_end - level_end - 1)][line.substr(cases_end + 2)] =
        line.substr(test_end + 1, cases_end - test_end - 1);
  }
}

std::string Skips::difference(const std::string& level, const std::string& test,
                              const OfTest& skipped) const {
  const auto listed = listed_.find(level);
  if (listed == listed_.end()) return "";
  const auto of_test = listed->second.find(test);
  std::map<std::string, std::string> expected;
  if (of_test != listed->second.end()) expected = of_test->second;
  const auto now = as_listed(skipped);
  std::string text;
  for (const auto& [reason, cases] : now) {
    if (const auto before = expected.find(reason); before == expected.end()) {
      text += fmt::format("skips cases {}, which it ran before: {}\n", cases, reason);
    } else if (before->second != cases) {
      text += fmt::format("skips cases {}, and {} before: {}\n", cases, before->second, reason);
    }
  }
  for (const auto& [reason, cases] : expected) {
    if (!now.count(reason)) {
      text += fmt::format("no longer skips cases {} with this reason: {}\n", cases, reason);
    }
  }
  return text;
}

void Skips::set(const std::string& level, const std::string& test, const OfTest& skipped) {
  auto& of_level = listed_[level];
  of_level.erase(test);
  if (!skipped.empty()) of_level[test] = as_listed(skipped);
}

void Skips::write() const {
  std::filesystem::create_directories(file_.parent_path());
  std::ofstream out(file_);
  out << kHeader;
  for (const auto& [level, tests] : listed_) {
    if (tests.empty()) out << level << '\n';
    for (const auto& [test, reasons] : tests) {
      for (const auto& [reason, cases] : reasons) {
        out << level << ' ' << test << ' ' << cases << ": " << reason << '\n';
      }
    }
  }
}

}  // namespace cookbook
