// SPDX-License-Identifier: MIT
// Where a line of a test's sources stands.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/harness/run/process.hpp"

namespace cookbook {

/// The number of the one line of `file`, named as in the repository, that ends in "// [tag]".
inline int line_of(const std::string& file, const std::string& tag) {
  std::ifstream in(source_path(file));
  const std::string mark = "// [" + tag + "]";
  int found = 0;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!line.ends_with(mark)) continue;
    EXPECT_EQ(found, 0) << "two lines of " << file << " are marked " << mark;
    found = number;
  }
  EXPECT_NE(found, 0) << "no line of " << file << " is marked " << mark;
  return found;
}

/// "file.cpp:N" of that line.
inline std::string place_of(const std::string& file, const std::string& tag) {
  return std::filesystem::path(file).filename().string() + ":" + std::to_string(line_of(file, tag));
}

}  // namespace cookbook
