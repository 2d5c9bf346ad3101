// SPDX-License-Identifier: MIT
#include "common/harness/level.hpp"

#include <algorithm>

namespace cookbook {

const LevelEntry* Ladder::find(const std::string& level_name) const {
  const auto level = std::find_if(levels.begin(), levels.end(), [&](const LevelEntry& entry) {
    return entry.name == level_name;
  });
  return level == levels.end() ? nullptr : &*level;
}

}  // namespace cookbook
