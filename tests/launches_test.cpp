// SPDX-License-Identifier: MIT
// What every level of a chapter launches, compared with a committed list: which kernel, how many
// blocks, how large, in which clusters. Another number of blocks gives the same result, so no
// comparison of results finds it. Nothing runs: at an H200's 132 SMs, or those of a
// GPU that a ladder needs, and full sizes, this takes milliseconds.
//
// tests/launches/NAME.txt, written with the list of skips.hpp:
//   <ladder>/<level> <size>: <launch>, <launch> ...
// with sizes that launch the same in one line. A launch is a letter for the kernel (in the order in
// which a ladder first launches them), the blocks of the grid x the threads of a block, and where
// there are any the blocks of a cluster and bytes of dynamic shared memory. A size with `+1` has
// pitches of one element more, so that no vector is aligned.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/harness/run/dry_launches.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/process.hpp"
#include "tests/chapters.hpp"
#include "tests/on_device.hpp"

namespace cookbook {
namespace {

std::string extents(const dim3& extent) {
  if (extent.z > 1) return fmt::format("{}.{}.{}", extent.x, extent.y, extent.z);
  return extent.y > 1 ? fmt::format("{}.{}", extent.x, extent.y) : fmt::format("{}", extent.x);
}

// The kernels of a ladder: a, b ... z, aa, ab ...
class Letters {
 public:
  std::string of(const std::string& kernel) {
    const auto at = static_cast<std::size_t>(std::find(kernels_.begin(), kernels_.end(), kernel) -
                                             kernels_.begin());
    if (at == kernels_.size()) kernels_.push_back(kernel);
    const char last = static_cast<char>('a' + at % 26);
    return at < 26 ? std::string(1, last)
                   : std::string(1, static_cast<char>('a' + at / 26 - 1)) + last;
  }

 private:
  std::vector<std::string> kernels_;
};

// What a level launches for a problem, or why it does not.
std::string launches_of(const LevelEntry& level, const AnyProblem& problem, Letters& letters) {
  const auto made = dry_launches(level, problem);
  if (!made) return "unsupported";
  std::vector<std::pair<std::string, int>> found;  // and how often one after another
  for (const auto& [kernel, config] : made->launches) {
    std::string text =
        fmt::format("{} {}x{}", letters.of(kernel), extents(config.grid), extents(config.block));
    if (config.cluster > 1) text += fmt::format(" cluster {}", config.cluster);
    if (config.smem_bytes > 0) text += fmt::format(" shared {}", config.smem_bytes);
    if (config.cooperative) text += " cooperative";
    if (config.dependent) text += " dependent";
    if (found.empty() || found.back().first != text) found.emplace_back(text, 0);
    ++found.back().second;
  }
  std::string all;
  for (const auto& [text, times] : found) {
    all += (all.empty() ? "" : ", ") + text + (times > 1 ? fmt::format(" {} times", times) : "");
  }
  return all.empty() ? "nothing" : all;
}

// Sizes at which launches are listed: those of the ladder. Of attention no large ones, where
// plans have gigabytes, and of a capstone a smaller full size.
std::vector<Size> sizes_of(const Ladder& ladder) {
  std::vector<Size> sizes = {ladder.trace_size, ladder.check_size};
  if (tested_chapter().is_capstone()) {
    Size size = ladder.gpu_size;
    while (ladder.make_problem(size, {})->bytes() > 0x1p29) {
      for (std::int64_t& extent : size) extent = (extent + 1) / 2;
    }
    sizes.push_back(size);
  } else if (tested_chapter().number != 10) {
    sizes.push_back(ladder.gpu_size);
  }
  // Shorter ones, between a device that is full and one block.
  for (const std::int64_t divisor : {16, 256}) {
    if (divisor == 16 && tested_chapter().number == 10) continue;
    Size size = ladder.gpu_size;
    std::int64_t& longest = *std::max_element(size.begin(), size.end());
    longest = (longest + divisor - 1) / divisor;
    sizes.push_back(size);
  }
  // The rows of a sidebar are settings of an experiment.
  if (ladder.title.rfind("sidebar", 0) == 0) return sizes;
  sizes.insert(sizes.end(), ladder.test_sizes.begin(), ladder.test_sizes.end());
  return sizes;
}

// The lines of a level, and their launches.
std::vector<std::pair<std::string, std::string>> lines_of(const Ladder& ladder,
                                                          const LevelEntry& level,
                                                          Letters& letters) {
  std::vector<std::pair<std::string, std::string>> found;  // sizes, launches
  const auto add = [&](const Size& size, std::int64_t extra_pitch) {
    Variant variant;
    variant.extra_pitch = extra_pitch;
    const auto problem = ladder.make_problem(size, variant);
    const std::string text = size_text(size) + (extra_pitch > 0 ? "+1" : "");
    const std::string launches = launches_of(level, *problem, letters);
    for (auto& [of, same] : found) {
      if (same == launches) {
        if ((" " + of + " ").find(" " + text + " ") == std::string::npos) of += " " + text;
        return;
      }
    }
    found.emplace_back(text, launches);
  };
  for (const Size& size : sizes_of(ladder)) add(size, 0);
  add(ladder.trace_size, 1);
  add(ladder.check_size, 1);
  return found;
}

// An H200, or the device of the table that a ladder needs instead.
std::string device_for(const Ladder& ladder) {
  const auto problem = ladder.make_problem(ladder.check_size, {});
  for (const char* name : {"b200", "rtx5090"}) {
    const auto runs_on = [&](const char* other) {
      const OnDevice device(other);
      return std::any_of(ladder.levels.begin(), ladder.levels.end(), [&](const LevelEntry& level) {
        return level.supports(*problem, device_info()).ok;
      });
    };
    if (!runs_on("h200") && runs_on(name)) return name;
  }
  return "h200";
}

// The lines of `some` that `others` lacks.
std::string without(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  std::string text;
  for (const std::string& line : some) {
    if (std::find(others.begin(), others.end(), line) == others.end()) text += line + "\n";
  }
  return text;
}

class LaunchesTest : public testing::Test {
 public:
  void TestBody() override {
    const std::string file = source_path("tests/launches/" + tested_prefix() + ".txt");
    std::map<std::string, std::vector<std::string>> listed;  // by level
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line[0] != '#') listed[line.substr(0, line.find(' '))].push_back(line);
    }
    in.close();
    const bool writes = std::getenv("COOKBOOK_WRITE_SKIPS") != nullptr;
    std::string all;
    for (const Ladder& ladder : tested_chapter().ladders) {
      const OnDevice device(device_for(ladder));
      Letters letters;
      for (const LevelEntry& level : ladder.levels) {
        const std::string name = ladder.name + "/" + level.name;
        if (!writes && listed.count(name) == 0) continue;  // a reader's own
        std::vector<std::string> lines;
        for (const auto& [sizes, launches] : lines_of(ladder, level, letters)) {
          lines.push_back(fmt::format("{} {}: {}", name, sizes, launches));
          all += lines.back() + "\n";
        }
        if (writes) continue;
        EXPECT_EQ(without(lines, listed[name]), "")
            << "is not in " << file << " (written by COOKBOOK_WRITE_SKIPS=1)";
        EXPECT_EQ(without(listed[name], lines), "") << "is in " << file << ", and no longer true";
      }
    }
    if (writes) {
      std::filesystem::create_directories(std::filesystem::path(file).parent_path());
      std::ofstream(file) << "# SPDX-License-Identifier: MIT\n"
                             "# Written by COOKBOOK_WRITE_SKIPS=1 and this chapter's levels-test: "
                             "see tests/launches_test.cpp.\n"
                          << all;
    }
  }
};

const bool kLaunchesRegistered = register_test<LaunchesTest>(tested_prefix(), "launches_as_listed");

}  // namespace
}  // namespace cookbook
