// SPDX-License-Identifier: MIT
// The chapter that a test executable is linked with: there is one executable per chapter.
#pragma once

#include "common/harness/level.hpp"

namespace cookbook {

/// Defined in a file that CMake writes for each chapter (tests/chapter_entry.cpp.in).
extern Chapter (*const tested_chapter_entry)();

inline const Chapter& tested_chapter() {
  static const Chapter chapter = tested_chapter_entry();
  return chapter;
}

}  // namespace cookbook
