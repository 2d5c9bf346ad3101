// SPDX-License-Identifier: MIT
// The program of a chapter.
//   COOKBOOK_CHAPTER    the function that makes the chapter: chapter_3_entry
//   COOKBOOK_LIBRARIES  what a user would pick instead: chapter_3_libraries (optional)
#ifdef COOKBOOK_LIBRARIES
#include "common/harness/run/runner.hpp"
#else
#include "common/harness/run/entry.hpp"
#endif

namespace cookbook {
Chapter COOKBOOK_CHAPTER();
#ifdef COOKBOOK_LIBRARIES
Libraries COOKBOOK_LIBRARIES();
#endif
}  // namespace cookbook

int main(int argc, char** argv) {
#ifdef COOKBOOK_LIBRARIES
  return cookbook::run_chapter(cookbook::COOKBOOK_CHAPTER(), argc, argv,
                               cookbook::COOKBOOK_LIBRARIES());
#else
  return cookbook::run_chapter(cookbook::COOKBOOK_CHAPTER, argc, argv);
#endif
}
