// SPDX-License-Identifier: MIT
// Command lines of a chapter, as a user meets them.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/harness/run/runner.hpp"
#include "tests/ended.hpp"
#include "tests/folder.hpp"

namespace cookbook {

/// Chapter 99, which has these ladders. Its exercises are the levels of the first.
inline Chapter chapter_of(std::vector<Ladder> ladders) {
  Chapter chapter;
  chapter.number = 99;
  chapter.title = ladders.front().title;
  chapter.exercises = ladders.front().levels;
  chapter.ladders = std::move(ladders);
  return chapter;
}

/// What the chapter's program prints and returns.
inline Ended run_captured(const Chapter& chapter, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), chapter.program());
  return ended_of([&] {
    return called_with(arguments,
                       [&](int argc, char** argv) { return run_chapter(chapter, argc, argv); });
  });
}

struct EndedRun : Ended {
  nlohmann::json json;  ///< what it wrote with --json; null if it wrote nothing
};

/// The same with --json, into a folder that is missing.
inline EndedRun run_with_json(const Chapter& chapter, std::vector<std::string> arguments) {
  const Folder folder;
  const std::string file = folder / "new/folder/out.json";
  arguments.insert(arguments.end(), {"--json", file});
  EndedRun ended{run_captured(chapter, arguments), {}};
  if (std::ifstream in{file}) ended.json = nlohmann::json::parse(in);
  return ended;
}

}  // namespace cookbook
