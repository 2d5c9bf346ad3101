// SPDX-License-Identifier: MIT
#include "common/harness/contract/level.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cookbook {

std::string size_text(const Size& size) { return fmt::format("{}", fmt::join(size, "x")); }

LevelEntry level_entry(const LevelText& text, bool same_every_run,
                       const LevelFunctions& functions) {
  LevelEntry entry;
  entry.name = text.name;
  entry.changed = text.changed;
  entry.expect = text.expect;
  entry.cost = text.cost;
  entry.ladder = text.ladder;
  entry.source = text.source;
  entry.same_every_run = same_every_run;
  entry.supports = functions.supports;
  entry.prepare = functions.prepare;
  entry.claims = functions.claims;
  return entry;
}

std::vector<LevelEntry> made_by(std::initializer_list<LevelEntry (*)()> levels) {
  std::vector<LevelEntry> entries;
  for (LevelEntry (*make)() : levels) entries.push_back(make());
  return entries;
}

const LevelEntry* Ladder::find(const std::string& level_name) const {
  const auto level = std::find_if(levels.begin(), levels.end(), [&](const LevelEntry& entry) {
    return entry.name == level_name;
  });
  return level == levels.end() ? nullptr : &*level;
}

std::vector<std::string> unlisted_files(const Chapter& chapter) {
  std::vector<std::string> unlisted;
  for (const std::string& file : chapter.files) {
    const auto is_in = [&](const LevelEntry& level) { return level.source.ends_with("/" + file); };
    if (std::none_of(chapter.ladders.begin(), chapter.ladders.end(), [&](const Ladder& ladder) {
          return std::any_of(ladder.levels.begin(), ladder.levels.end(), is_in);
        })) {
      unlisted.push_back(file);
    }
  }
  return unlisted;
}

double work_of(const Ladder& ladder, const Size& size) {
  const auto problem = ladder.make_problem(size, {});
  return problem->bytes() + problem->flops();
}

}  // namespace cookbook
