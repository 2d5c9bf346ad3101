// SPDX-License-Identifier: MIT
// The program of a chapter.
//   COOKBOOK_CHAPTER    the function that makes the chapter: chapter_3_entry
//   COOKBOOK_LIBRARIES  what a user would pick instead: chapter_3_libraries (optional)
#include "common/harness/entry.hpp"

namespace cookbook {
Chapter COOKBOOK_CHAPTER();
#ifdef COOKBOOK_LIBRARIES
Libraries COOKBOOK_LIBRARIES();
#else
static Libraries (*const COOKBOOK_LIBRARIES)() = nullptr;
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
  return cookbook::run_chapter(cookbook::COOKBOOK_CHAPTER, argc, argv,
                               cookbook::COOKBOOK_LIBRARIES);
}
