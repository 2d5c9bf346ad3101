// SPDX-License-Identifier: MIT
// The grader of `./run exercise N.M`, on every exercise as it is shipped, on every solution and on
// solutions that are wrong. Its verdict and its reasons are read from the JSON that it writes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/harness/process.hpp"

namespace cookbook {
namespace {

namespace fs = std::filesystem;

enum class Why {
  wrong_result,  // an element differs
  unwritten,     // an element was never written, or a thread never came to a barrier
  race,          // found by the tracer
  misaligned,    // found by the tracer
  false_claim,   // right, but by another mechanism than the one it was to use
};

// Part of the reasons that the grader gives. A false claim says what was counted instead.
const char* words(Why why) {
  switch (why) {
    case Why::wrong_result: return ": got ";
    case Why::unwritten: return "was never written";
    case Why::race: return "race";
    case Why::misaligned: return "misaligned";
    case Why::false_claim: return "measured ";
  }
  return "?";
}

struct Graded {
  int status = 0;
  bool passed = false;
  std::vector<std::string> failures;  // "check: reason"

  bool has(Why why) const {
    return std::any_of(failures.begin(), failures.end(), [why](const std::string& failure) {
      return failure.find(words(why)) != std::string::npos;
    });
  }
  std::string text() const {
    std::string all;
    for (const std::string& failure : failures) all += "  " + failure + "\n";
    return all;
  }
};

fs::path build_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

// All test sizes of these two take most of a minute. Some of them here, as --size selects them; the
// traced size, the inputs, the layouts and the tracer as ever.
const std::pair<int, const char*> kSizesOfSlowOnes[] = {{8, "1x1x1"},
                                                        {8, "8x8x1000"},
                                                        {10, "1x1x1x1x1x64"},
                                                        {10, "2x2x1x1x65x128"},
                                                        {10, "1x2x2x65x63x128"}};

// Grades exercise `number` of the chapter that `folder` holds a program of.
Graded grade(const fs::path& folder, int chapter, int number) {
  const fs::path json = fs::temp_directory_path() / fmt::format("cookbook-grade-{}.json", getpid());
  fs::remove(json);
  Graded graded;
  std::vector<std::string> arguments = {folder / fmt::format("chapter-{}", chapter), "--exercise",
                                        std::to_string(number), "--json", json};
  for (const auto& [of_chapter, size] : kSizesOfSlowOnes) {
    if (of_chapter != chapter) continue;
    arguments.push_back("--size");
    arguments.push_back(size);
  }
  graded.status = run_program(arguments);
  std::ifstream in(json);
  if (!in) {
    graded.failures = {fmt::format("no JSON; status {}", graded.status)};
    return graded;
  }
  const auto document = nlohmann::json::parse(in);
  fs::remove(json);
  graded.passed = document.at("passed");
  for (const auto& check : document.at("checks")) {
    if (check.at("passed")) continue;
    graded.failures.push_back(fmt::format(
        "{}: {}", check.at("check").get<std::string>(),
        check.at("reason").is_null() ? "no reason" : check.at("reason").get<std::string>()));
  }
  return graded;
}

struct Exercise {
  int chapter, number;
  Why why;
  bool results_right = false;  // of a wrong solution: as far as a run without the tracer can see
};
std::string name_of(const testing::TestParamInfo<Exercise>& info) {
  return fmt::format("{}_{}", info.param.chapter, info.param.number);
}
void PrintTo(const Exercise& exercise, std::ostream* out) {
  *out << exercise.chapter << "." << exercise.number;
}

// Why each exercise, as it is shipped, does not pass.
const Exercise kShipped[] = {
    {0, 1, Why::false_claim},    //
    {0, 2, Why::false_claim},    //
    {1, 1, Why::false_claim},    //
    {1, 2, Why::unwritten},      //
    {2, 1, Why::wrong_result},   //
    {2, 2, Why::race},           //
    {3, 1, Why::false_claim},    //
    {3, 2, Why::unwritten},      //
    {4, 1, Why::race},           //
    {4, 2, Why::race},           //
    {5, 1, Why::wrong_result},   //
    {5, 2, Why::race},           //
    {5, 3, Why::false_claim},    //
    {6, 1, Why::wrong_result},   //
    {6, 2, Why::race},           //
    {7, 1, Why::wrong_result},   //
    {7, 2, Why::unwritten},      //
    {8, 1, Why::false_claim},    //
    {8, 2, Why::race},           //
    {9, 1, Why::false_claim},    //
    {9, 2, Why::race},           //
    {10, 1, Why::wrong_result},  //
    {10, 2, Why::race},          //
    {11, 1, Why::false_claim},   //
    {11, 2, Why::wrong_result},  //
};

class Shipped : public testing::TestWithParam<Exercise> {};
TEST_P(Shipped, IsRejectedForTheReasonThatItTeaches) {
  const Graded graded = grade(build_folder(), GetParam().chapter, GetParam().number);
  EXPECT_EQ(graded.status, 1);
  EXPECT_FALSE(graded.passed);
  EXPECT_TRUE(graded.has(GetParam().why)) << "no '" << words(GetParam().why) << "' among\n"
                                          << graded.text();
}
INSTANTIATE_TEST_SUITE_P(Exercise, Shipped, testing::ValuesIn(kShipped), name_of);

class Solution : public testing::TestWithParam<Exercise> {};
TEST_P(Solution, IsAccepted) {
  const Graded graded = grade(build_folder() / "solutions", GetParam().chapter, GetParam().number);
  EXPECT_EQ(graded.status, 0);
  EXPECT_TRUE(graded.passed) << graded.text();
}
INSTANTIATE_TEST_SUITE_P(Exercise, Solution, testing::ValuesIn(kShipped), name_of);

// Solutions that are wrong, graded as one exercise more than their chapter has.
const Exercise kWrong[] = {
    {0, 3, Why::false_claim, true},  // lanes that share a bank still read in step
    {1, 3, Why::misaligned, true},   // pairs that ignore where the arrays begin
    {2, 3, Why::race},               // a warp's barrier where the block's is needed
    {3, 3, Why::false_claim, true},  // fewer conflicts, but not none
};
class WrongSolution : public testing::TestWithParam<Exercise> {};
TEST_P(WrongSolution, IsRejected) {
  const Graded graded = grade(build_folder() / "solutions", GetParam().chapter, GetParam().number);
  EXPECT_EQ(graded.status, 1);
  EXPECT_FALSE(graded.passed);
  EXPECT_TRUE(graded.has(GetParam().why)) << graded.text();
  if (GetParam().results_right) {
    EXPECT_FALSE(graded.has(Why::wrong_result) || graded.has(Why::unwritten)) << graded.text();
  }
}
INSTANTIATE_TEST_SUITE_P(Exercise, WrongSolution, testing::ValuesIn(kWrong), name_of);

// Nothing is left out: every file of every exercises/ has a row above and a solution.
TEST(Exercises, AllAreGradedHere) {
  const fs::path source = COOKBOOK_SOURCE_DIR;
  int files = 0;
  for (const auto& chapter : fs::directory_iterator(source / "chapters")) {
    if (!fs::is_directory(chapter.path() / "exercises")) continue;
    const std::string digits = chapter.path().filename().string().substr(0, 2);
    for (const auto& file : fs::directory_iterator(chapter.path() / "exercises")) {
      if (file.path().extension() != ".cuh") continue;
      const std::string name = file.path().filename();
      const int number = std::stoi(name.substr(name.find('_') + 1));
      ++files;
      EXPECT_TRUE(std::any_of(std::begin(kShipped), std::end(kShipped),
                              [&](const Exercise& exercise) {
                                return exercise.chapter == std::stoi(digits) &&
                                       exercise.number == number;
                              }))
          << file.path();
      EXPECT_TRUE(fs::exists(source / "tests/solutions" / digits / name)) << file.path();
    }
  }
  EXPECT_EQ(files, static_cast<int>(std::size(kShipped)));
}

}  // namespace
}  // namespace cookbook
