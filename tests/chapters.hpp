// SPDX-License-Identifier: MIT
// The chapter that a test executable is linked with: there is one executable per chapter.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/harness/level.hpp"
#include "common/harness/process.hpp"

namespace cookbook {

/// Defined in a file that CMake writes for each chapter (tests/chapter_entry.cpp.in).
extern Chapter (*const tested_chapter_entry)();

inline const Chapter& tested_chapter() {
  static const Chapter chapter = tested_chapter_entry();
  return chapter;
}

/// The list of skips.hpp for the tested chapter.
inline std::string skip_list() {
  return source_path("tests/skips/chapter_" + std::to_string(tested_chapter().number) + ".txt");
}

/// Whether the chapter is tested with all of layout_cases.hpp. One without a list, such as a new
/// one, is tested with a few layouts only.
inline bool has_all_layouts() {
  return std::filesystem::exists(skip_list()) || std::getenv("COOKBOOK_WRITE_SKIPS");
}

}  // namespace cookbook
