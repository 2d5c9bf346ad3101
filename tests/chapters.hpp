// SPDX-License-Identifier: MIT
// Every chapter that is built, for tests that go through all of them.
#pragma once

#include <vector>

#include "common/harness/level.hpp"

namespace cookbook {

#define COOKBOOK_CHAPTER(number) Chapter chapter_##number##_entry();
#include "chapter_list.inc"
#undef COOKBOOK_CHAPTER

inline const std::vector<Chapter>& all_chapters() {
  static const std::vector<Chapter> chapters = {
#define COOKBOOK_CHAPTER(number) chapter_##number##_entry(),
#include "chapter_list.inc"
#undef COOKBOOK_CHAPTER
  };
  return chapters;
}

}  // namespace cookbook
