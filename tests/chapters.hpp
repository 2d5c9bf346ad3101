// SPDX-License-Identifier: MIT
// The chapter that a test executable is linked with: there is one executable per chapter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/harness/contract/level.hpp"
#include "common/harness/run/process.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/devices.hpp"
#endif

namespace cookbook {

/// Defined in a file that CMake writes for each chapter (common/cmake/chapter_entry.cpp.in).
extern Chapter (*const tested_chapter_entry)();

inline const Chapter& tested_chapter() {
  static const Chapter chapter = [] {
    Chapter made = tested_chapter_entry();
#if COOKBOOK_SIMT
    simt::set_model_capability(made.model_capability);
#endif
    return made;
  }();
  return chapter;
}

/// What the names of the chapter's tests begin with: "chapter_3" or "capstone_scan".
inline std::string tested_prefix() {
  std::string name = tested_chapter().program();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The list of skips.hpp for the tested chapter. A capstone has none: its levels may skip any case.
inline std::string skip_list() { return source_path("tests/skips/" + tested_prefix() + ".txt"); }

/// Whether the chapter is tested with all of layout_cases.hpp. A chapter without a list, such as a
/// new one, is tested with a few layouts only.
inline bool has_all_layouts() {
  return tested_chapter().is_capstone() || std::filesystem::exists(skip_list()) ||
         std::getenv("COOKBOOK_WRITE_SKIPS");
}

/// Whether a few layouts are enough for a program ("chapter_3", "capstone_scan"), one kind of
/// inputs, and one variant of exercises: for what is unchanged since it passed with all of them
/// (tools/command/unchanged.py), but for the program that `./run test` has drawn to find a record
/// that is wrong.
inline bool is_short_test(const std::string& program) {
  if (!std::getenv("COOKBOOK_SHORT_TEST") || std::getenv("COOKBOOK_WRITE_SKIPS")) return false;
  const char* drawn = std::getenv("COOKBOOK_FULL_TEST");
  return !drawn || program != drawn;
}
inline bool is_short_test() { return is_short_test(tested_prefix()); }

/// Registers the test `Test(arguments...)`. Of a std::cref, the object must outlive it.
template <class Test, class... Arguments>
bool register_test(const std::string& suite, const std::string& name, Arguments... arguments) {
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> testing::Test* { return new Test(arguments...); });
  return true;
}

}  // namespace cookbook
