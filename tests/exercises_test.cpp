// SPDX-License-Identifier: MIT
// The grader of `./run exercise N.M`, on every exercise as it is shipped, on every solution and on
// solutions that are wrong. Its verdict and its reasons are read from the JSON that it writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "common/backend/fault.hpp"
#include "common/harness/run/process.hpp"
#include "tests/chapters.hpp"
#include "tests/folder.hpp"
#include "tests/ended.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

namespace fs = std::filesystem;

// Of the graded programs. An exercise that hangs does so three times.
const bool kSpinsBriefly = setenv("COOKBOOK_SIMT_SPIN_SECONDS", "2", 1) == 0;

struct Graded {
  int status = 0;
  bool passed = false;
  bool complete = false;              // without --size, and with the tracer
  std::string said;                   // the last line: the verdict
  std::vector<std::string> failures;  // "check: reason"
  std::set<Fault> faults;             // of the failures
  std::vector<std::string> first;     // of `failures` the first of each fault

  bool has(Fault fault) const { return faults.count(fault) != 0; }
  std::string text() const {
    std::string all;
    for (const std::string& failure : failures) all += "  " + failure + "\n";
    return all;
  }
};

fs::path build_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

// All test sizes of these take up to a minute. So only some are graded here, as with --size,
// but the traced size, the inputs, the layouts and the tracer as usual. Such a grade is never a
// pass.
const std::map<int, std::vector<std::string>> kSizesOfSlowOnes = {
    {8, {"1x1x1", "8x8x1000"}},
    {10, {"1x1x1x1x1x64", "2x2x1x1x65x128", "1x2x2x65x63x128"}},
    {13, {"1x1x1x1x1x64", "1x2x1x64x129x128"}},
    {15, {"1x8x8", "97x104x448"}}};
std::vector<std::string> sizes_of(int chapter) {
  const auto found = kSizesOfSlowOnes.find(chapter);
  return found == kSizesOfSlowOnes.end() ? std::vector<std::string>{} : found->second;
}

// Grades exercise `number` of a chapter's or a capstone's program.
Graded grade(const fs::path& program, int number, const std::vector<std::string>& sizes = {}) {
  const Folder own;
  const std::string json = own / "grade.json";
  Graded graded;
  std::vector<std::string> arguments = {program, "--exercise", std::to_string(number), "--json",
                                        json};
  for (const std::string& size : sizes) {
    arguments.push_back("--size");
    arguments.push_back(size);
  }
  const std::string out = stdout_of([&] { graded.status = run_program(arguments); });
  fmt::print("{}", out);
  graded.said =
      out.substr(out.rfind("exercise ") == std::string::npos ? 0 : out.rfind("exercise "));
  std::ifstream in(json);
  if (!in) {
    graded.failures = {fmt::format("no JSON; status {}", graded.status)};
    return graded;
  }
  const auto document = nlohmann::json::parse(in);
  graded.passed = document.at("passed");
  graded.complete = document.at("complete");
  for (const auto& check : document.at("checks")) {
    if (check.at("passed")) continue;
    const bool is_first =
        graded.faults.insert(fault_named(check.at("fault").get<std::string>())).second;
    graded.failures.push_back(fmt::format(
        "{}: {}", check.at("check").get<std::string>(),
        check.at("reason").is_null() ? "no reason" : check.at("reason").get<std::string>()));
    if (is_first) graded.first.push_back(graded.failures.back());
  }
  return graded;
}

// Grades exercise `number` of the chapter that `folder` holds a program of.
Graded grade(const fs::path& folder, int chapter, int number,
             const std::vector<std::string>& sizes) {
  return grade(folder / fmt::format("chapter-{}", chapter), number, sizes);
}

// The file of tests/solutions/ that makes a solution, or a wrong one, of an exercise.
fs::path edits_of(const fs::path& exercise, const std::string& folder, const char* ending) {
  return source_path("tests/solutions/" + folder + "/" + exercise.stem().string() + ending);
}

struct Exercise {
  int chapter, number;
  Fault why;
};
std::string name_of(const testing::TestParamInfo<Exercise>& info) {
  return fmt::format("{}_{}", info.param.chapter, info.param.number);
}
void PrintTo(const Exercise& exercise, std::ostream* out) {
  *out << exercise.chapter << "." << exercise.number;
}

// Why the exercises of each chapter, as they are shipped, do not pass: N.1, N.2 ...
const std::map<int, std::vector<Fault>> kReasons = {
    {0, {Fault::false_claim, Fault::false_claim}},
    {1, {Fault::false_claim, Fault::unwritten}},
    {2, {Fault::wrong_result, Fault::race, Fault::false_claim}},
    {3, {Fault::false_claim, Fault::unwritten}},
    {4, {Fault::race, Fault::race, Fault::false_claim}},
    {5, {Fault::wrong_result, Fault::race, Fault::false_claim}},
    {6, {Fault::wrong_result, Fault::race}},
    {7, {Fault::wrong_result, Fault::unwritten}},
    {8, {Fault::false_claim, Fault::race}},
    {9, {Fault::false_claim, Fault::race}},
    {10, {Fault::wrong_result, Fault::race}},
    {11, {Fault::false_claim, Fault::wrong_result, Fault::false_claim}},
    {12, {Fault::wrong_result, Fault::wrong_result}},
    {13, {Fault::wrong_result, Fault::false_claim}},
    {14, {Fault::race, Fault::race}},
    {15, {Fault::wrong_result, Fault::race}},
};
const std::vector<Exercise> kShipped = [] {
  std::vector<Exercise> all;
  for (const auto& [chapter, reasons] : kReasons) {
    for (const Fault why : reasons) {
      const bool follows = !all.empty() && all.back().chapter == chapter;
      all.push_back({chapter, follows ? all.back().number + 1 : 1, why});
    }
  }
  return all;
}();

void expect_rejected(const Graded& graded, Fault why) {
  EXPECT_EQ(graded.status, 1);
  EXPECT_FALSE(graded.passed);
  EXPECT_TRUE(graded.has(why)) << "no '" << fault_name(why) << "' among\n" << graded.text();
}

// A text without its numbers, which depend on the compiler and, of lines, on what stands above.
std::string without_numbers(const std::vector<std::string>& lines) {
  static const std::regex kNumber("-?(nan|inf|[0-9][0-9.,]*(e[+-][0-9]+)?)");
  return std::regex_replace(nlohmann::json(lines).dump(), kNumber, "#");
}

class Shipped : public testing::TestWithParam<Exercise> {};
TEST_P(Shipped, IsRejectedForTheReasonThatItTeaches) {
  const auto [chapter, number, why] = GetParam();
  const Graded graded = grade(build_folder(), chapter, number, sizes_of(chapter));
  expect_rejected(graded, why);

  static const auto site = nlohmann::json::parse(std::ifstream(source_path("docs/graded.json")));
  const std::string key = fmt::format("{}.{}", chapter, number);
  EXPECT_EQ(without_numbers(site.value(key, std::vector<std::string>{})),
            without_numbers(graded.first))
      << "docs/graded.json, which the site shows, should say\n \"" << key
      << "\": " << nlohmann::json(graded.first).dump();
}
INSTANTIATE_TEST_SUITE_P(Exercise, Shipped, testing::ValuesIn(kShipped), name_of);

class Solution : public testing::TestWithParam<Exercise> {};
TEST_P(Solution, IsAccepted) {
  const auto sizes = sizes_of(GetParam().chapter);
  const Graded graded =
      grade(build_folder() / "solutions", GetParam().chapter, GetParam().number, sizes);
  EXPECT_TRUE(graded.failures.empty()) << graded.text();
  EXPECT_EQ(graded.complete, sizes.empty());
  EXPECT_EQ(graded.passed, sizes.empty());
  EXPECT_EQ(graded.status, sizes.empty() ? 0 : 1);
}
INSTANTIATE_TEST_SUITE_P(Exercise, Solution, testing::ValuesIn(kShipped), name_of);

// The bug of 1.2 does not show at a multiple of 4,096, nor at the sizes that the tracer, the inputs
// and the layouts take: a size of one's own choice must not pass it.
TEST(ChosenSizes, AreNoGrade) {
  const Graded graded = grade(build_folder(), 1, 2, {"4096"});
  EXPECT_TRUE(graded.failures.empty()) << graded.text();
  EXPECT_EQ(graded.status, 1);
  EXPECT_FALSE(graded.passed);
  EXPECT_FALSE(graded.complete);
  EXPECT_EQ(graded.said, "exercise 1.2: right at these sizes; run without --size for the grade\n");
}

// Of a program with its traced twin, which ./run exercise and these tests have.
TEST(Explain, DoesNotReplaceTheCheck) {
  const auto says = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        build_folder() / "chapter-1", "--ladder", "copy", "--level", "0", "--explain"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return stdout_of([&] { EXPECT_EQ(run_program(arguments), 0); });
  };
  const std::string alone = says({}), both = says({"--check"});
  const std::string table = " check  claims\n", report = "basic blocks issued";
  EXPECT_LACKS(alone, table);
  EXPECT_CONTAINS(alone, report);
  EXPECT_CONTAINS(both, table);
  EXPECT_CONTAINS(both, report);
}

// Why wrong solutions are rejected, by exercise.
struct Wrong {
  Fault why;
  bool results_right;  // as far as a run without the tracer can see
};
const std::map<std::string, Wrong> kWrong = {
    // lanes that share a bank still read in step
    {"0.2", {Fault::false_claim, true}},
    // pairs that ignore where the arrays begin
    {"1.1", {Fault::misaligned, true}},
    // tiles that are read, and not used
    {"2.1", {Fault::false_claim, true}},
    // a warp's barrier where the block's is needed
    {"2.2", {Fault::race, false}},
    // fewer conflicts, but not none
    {"3.1", {Fault::false_claim, true}},
    // the conflicts of one operand for those of the other
    {"4.3", {Fault::false_claim, true}},
    // elements beyond those that are kept
    {"11.3", {Fault::unwritten, false}},
    // tiles that the mask hides
    {"13.1", {Fault::false_claim, true}},
    // the same sectors in another order
    {"13.2", {Fault::false_claim, true}},
    // the swizzle of other rows
    {"15.1", {Fault::wrong_result, false}},
    // a lane that speaks too early
    {"15.2", {Fault::race, true}},
};
// Wrong solutions, then variants of exercises as they are handed out, and solved: graded after the
// exercises of their chapter (tools/exercises/variants.py).
class Variants : public testing::TestWithParam<int> {};
TEST_P(Variants, OnlySolutionsPass) {
  const int chapter = GetParam();
  int number = static_cast<int>(kReasons.at(chapter).size());
  const bool is_short = is_short_test(fmt::format("chapter_{}", chapter));
  std::map<std::string, std::string> first;  // variant of each exercise
  const auto file = fmt::format("tests/solutions/{}/variants/variants.json", chapter);
  for (const auto& row : nlohmann::json::parse(std::ifstream(build_folder() / file))) {
    SCOPED_TRACE(row.dump());
    ++number;
    const std::string name = row.at("name");  // "variant_2_solved"
    const std::string variant = name.substr(0, name.find('_', std::strlen("variant_")));
    const bool is_variant = !row.at("wrong").get<bool>();
    if (is_variant && first.emplace(row.at("exercise"), variant).first->second != variant &&
        is_short) {
      continue;
    }
    const Graded graded = grade(build_folder() / "solutions", chapter, number, sizes_of(chapter));
    EXPECT_EQ(graded.complete, sizes_of(chapter).empty());
    EXPECT_EQ(graded.failures.empty(), row.at("solved").get<bool>()) << graded.text();
    if (!row.at("wrong").get<bool>()) continue;
    const auto wrong = kWrong.find(row.at("exercise").get<std::string>());
    ASSERT_NE(wrong, kWrong.end()) << "a wrong solution needs a row above";
    expect_rejected(graded, wrong->second.why);
    if (wrong->second.results_right) {
      EXPECT_FALSE(graded.has(Fault::wrong_result) || graded.has(Fault::unwritten))
          << graded.text();
    }
  }
}
std::vector<int> graded_chapters() {
  std::vector<int> all;
  for (const auto& [chapter, reasons] : kReasons) all.push_back(chapter);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Chapter, Variants, testing::ValuesIn(graded_chapters()));

// Nothing is left out: every file of every exercises/ has a row above and a solution.
TEST(Exercises, AllAreGradedHere) {
  const fs::path source = source_path("");
  int files = 0;
  for (const auto& chapter : fs::directory_iterator(source / "chapters")) {
    if (!fs::is_directory(chapter.path() / "exercises")) continue;
    const std::string digits = chapter.path().filename().string().substr(0, 2);
    for (const auto& file : fs::directory_iterator(chapter.path() / "exercises")) {
      if (file.path().extension() != ".cuh") continue;
      const std::string name = file.path().filename();
      const int number = std::stoi(name.substr(name.find('_') + 1));
      ++files;
      const auto graded = kReasons.find(std::stoi(digits));
      EXPECT_TRUE(graded != kReasons.end() && number >= 1 &&
                  number <= static_cast<int>(graded->second.size()))
          << file.path();
      EXPECT_TRUE(fs::exists(edits_of(file, digits, ".diff"))) << file.path();
    }
  }
  EXPECT_EQ(files, static_cast<int>(std::size(kShipped)));
}

// The exercise of each capstone, in the order of the folders. tests/solutions/ has a solution of
// each, and one that is wrong.
struct OfCapstone {
  const char* capstone;
  Fault shipped, wrong;  // why they do not pass
};
const OfCapstone kCapstones[] = {
    {"convolution", Fault::race, Fault::race},
    {"gemv", Fault::race, Fault::race},
    {"histogram", Fault::wrong_result, Fault::wrong_result},
    {"scan", Fault::no_progress, Fault::race},
    {"spmv", Fault::wrong_result, Fault::wrong_result},
};
class CapstoneExercise : public testing::TestWithParam<int> {
 protected:
  const OfCapstone& exercise() const { return kCapstones[GetParam()]; }
};
// Of a maintainer, as those of the chapters: a reader may solve them.
class ShippedCapstone : public CapstoneExercise {};
TEST_P(ShippedCapstone, IsRejectedForTheReasonThatItTeaches) {
  const fs::path program = build_folder() / fmt::format("capstone-{}", exercise().capstone);
  expect_rejected(grade(program, 1), exercise().shipped);
}
TEST_P(CapstoneExercise, TheSolutionIsAccepted) {
  const Graded graded = grade(build_folder() / "solutions/capstone-solutions", GetParam() + 1);
  EXPECT_TRUE(graded.failures.empty()) << graded.text();
  EXPECT_TRUE(graded.passed && graded.complete);
  EXPECT_EQ(graded.status, 0);
}
TEST_P(CapstoneExercise, TheWrongSolutionIsRejected) {
  const int count = static_cast<int>(std::size(kCapstones));
  expect_rejected(grade(build_folder() / "solutions/capstone-solutions", count + GetParam() + 1),
                  exercise().wrong);
}
std::string name_of_capstone(const testing::TestParamInfo<int>& info) {
  return kCapstones[info.param].capstone;
}
const auto kAllCapstones = testing::Range(0, static_cast<int>(std::size(kCapstones)));
INSTANTIATE_TEST_SUITE_P(Of, ShippedCapstone, kAllCapstones, name_of_capstone);
INSTANTIATE_TEST_SUITE_P(Of, CapstoneExercise, kAllCapstones, name_of_capstone);

TEST(Exercises, AllOfCapstonesAreGradedHere) {
  std::set<std::string> files, rows;
  for (const auto& capstone : fs::directory_iterator(source_path("capstones"))) {
    if (!fs::is_directory(capstone.path() / "exercises")) continue;
    for (const auto& file : fs::directory_iterator(capstone.path() / "exercises")) {
      EXPECT_EQ(file.path().filename().string().rfind("exercise_1_", 0), 0u) << file.path();
      for (const char* ending : {".diff", ".wrong.diff"}) {
        EXPECT_TRUE(fs::exists(edits_of(file, capstone.path().filename(), ending))) << file.path();
      }
    }
    files.insert(capstone.path().filename());
  }
  for (const OfCapstone& exercise : kCapstones) rows.insert(exercise.capstone);
  EXPECT_EQ(files, rows);
}

// Every row of kWrong has its file; Variants finds a file without a row.
TEST(Exercises, AllWrongSolutionsAreThere) {
  std::set<std::string> files, rows;
  for (const auto& entry : fs::recursive_directory_iterator(source_path("tests/solutions"))) {
    const std::string folder = entry.path().parent_path().filename(),
                      name = entry.path().filename();
    if (!name.ends_with(".wrong.diff") || !std::isdigit(folder[0])) continue;
    files.insert(fmt::format("{}.{}", std::stoi(folder), std::stoi(name.substr(9))));
  }
  for (const auto& [exercise, wrong] : kWrong) rows.insert(exercise);
  EXPECT_EQ(files, rows);
}

}  // namespace
}  // namespace cookbook
