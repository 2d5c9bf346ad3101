// SPDX-License-Identifier: MIT
// docs/levels/chapter_N.json: the levels of each ladder, with their files and what they say about
// themselves, from which the site is made. Written with the list of skips.hpp. A level that is not
// listed is a reader's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "common/harness/run/process.hpp"
#include "tests/chapters.hpp"

namespace cookbook {
namespace {

using Json = nlohmann::ordered_json;

// The file's path in this tree; it was compiled in this one or, with a cache of objects, in
// another.
std::string in_tree(std::string source) {
  while (!source.empty() && !std::filesystem::exists(source_path(source))) {
    const std::size_t slash = source.find('/');
    source.erase(0, slash == std::string::npos ? slash : slash + 1);
  }
  return source;
}

Json levels_of(const Chapter& chapter) {
  Json levels = Json::array();
  for (const Ladder& ladder : chapter.ladders) {
    for (const LevelEntry& level : ladder.levels) {
      levels.push_back({{"ladder", ladder.name},
                        {"name", level.name},
                        {"file", in_tree(level.source)},
                        {"changed", level.changed},
                        {"expect", level.expect},
                        {"cost", level.cost}});
    }
  }
  return levels;
}

class LevelsListTest : public testing::Test {
 public:
  void TestBody() override {
    const std::string file = source_path("docs/levels/" + tested_prefix() + ".json");
    const Json levels = levels_of(tested_chapter());
    if (std::getenv("COOKBOOK_WRITE_SKIPS")) {
      std::ofstream out(file);
      for (std::size_t i = 0; i < levels.size(); ++i) {
        out << (i == 0 ? "[\n" : ",\n") << levels[i].dump();
      }
      out << "\n]\n";
      return;
    }
    std::ifstream in(file);
    if (!in) GTEST_SKIP() << file << " is missing: a reader's own chapter";
    auto at = levels.begin();
    for (const Json& listed : Json::parse(in)) {
      const auto found = std::find(at, levels.end(), listed);
      EXPECT_TRUE(found != levels.end())
          << "is not what the levels say, in this order: " << listed << '\n'
          << file << " is written by COOKBOOK_WRITE_SKIPS=1";
      if (found != levels.end()) at = found + 1;
    }
  }
};

const bool kListRegistered = !tested_chapter().is_capstone() &&
                             register_test<LevelsListTest>(tested_prefix(), "levels_as_listed");

}  // namespace
}  // namespace cookbook
