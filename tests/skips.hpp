// SPDX-License-Identifier: MIT
// Which cases each level skips, compared with a committed list: a level that no longer supports a
// case, or newly supports one, is found.
//
// tests/skips/chapter_N.txt, written by `COOKBOOK_WRITE_SKIPS=1 build/simt/levels-test-N`:
//   <ladder>/<level>                           a level that skips nothing
//   <ladder>/<level> <test> <cases>: <reason>  cases by number, from 0; numbers in the reason as #
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cookbook {

class Skips {
 public:
  /// Of one test of a level: the cases that it skipped, by reason.
  using OfTest = std::map<std::string, std::vector<int>>;

  /// Reads `file`, if it is there.
  explicit Skips(std::filesystem::path file);

  /// Empty if the level skipped what the list says, else what differs. A level that is not listed
  /// may skip any case: it is a reader's own.
  std::string difference(const std::string& level, const std::string& test,
                         const OfTest& skipped) const;
  void set(const std::string& level, const std::string& test, const OfTest& skipped);
  void write() const;

 private:
  std::filesystem::path file_;
  std::map<std::string, std::map<std::string, std::map<std::string, std::string>>> listed_;
};

/// `reason` with # for every number: sizes and limits are not what the list is about.
std::string without_numbers(const std::string& reason);

}  // namespace cookbook
