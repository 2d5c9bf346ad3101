// SPDX-License-Identifier: MIT
// The SIMT backend counts what an H200 counted: sectors of global memory and bank conflicts of
// shared memory, in all and per source line, for every case of tests/parity/. See docs/parity.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/folder.hpp"
#include "tests/parity/cases.hpp"
#include "tests/parity/counts.hpp"
#include "tests/text.hpp"

namespace cookbook::parity {
namespace {

const char* kNoGolden =
    "tests/parity/golden/h200.json is committed and is not here, or holds no case: nothing to "
    "compare with (docs/parity.md says how to measure)";

const Golden& golden() {
  static const Golden loaded =
      Golden::load(Golden::default_file(), Golden::default_exceptions_file());
  return loaded;
}

// Cases of levels that are newer than the measurement: the test only says so.
const std::set<std::string>& not_yet_measured() {
  static const std::set<std::string> names = [] {
    std::ifstream file(std::filesystem::path(Golden::default_file()).parent_path() /
                       "not_yet_measured.txt");
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    return lines;
  }();
  return names;
}

class ParityTest : public testing::Test {
 public:
  explicit ParityTest(const Case& one) : case_(one) {}

  void TestBody() override {
    ASSERT_FALSE(golden().empty()) << kNoGolden;
    const auto measured = golden().cases.find(case_.name);
    if (not_yet_measured().count(case_.name) > 0) {
      ASSERT_TRUE(measured == golden().cases.end())
          << case_.name << " is measured now: remove it from not_yet_measured.txt";
      EXPECT_FALSE(trace_case(case_, case_.size).totals.empty());
      GTEST_SKIP() << case_.name << " is not yet measured";
    }
    ASSERT_TRUE(measured != golden().cases.end())
        << case_.name
        << " has no measurement: run tests/parity/run_ncu.sh on a GPU (docs/parity.md)";
    const CaseCounts simt = trace_case(case_, measured->second.size);
    const Verdict verdict = judge(case_.name, simt, golden());
    for (const std::string& note : verdict.notes) fmt::print("note: {}\n", note);
    for (const std::string& text : verdict.explained) fmt::print("explained: {}\n", text);
    for (const std::string& text : verdict.failures) ADD_FAILURE() << text;
  }

 private:
  const Case& case_;
};

const bool kRegistered = [] {
  if (!golden().empty()) model_sms(golden().sm_count);
  for (const Case& one : all_cases()) {
    const std::size_t slash = one.name.find('/');
    std::string suite = one.name.substr(0, slash), name = one.name.substr(slash + 1);
    for (std::string* text : {&suite, &name}) {
      for (char& c : *text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    testing::RegisterTest(("parity_" + suite).c_str(), name.c_str(), nullptr, nullptr, __FILE__,
                          __LINE__, [&one]() -> testing::Test* { return new ParityTest(one); });
  }
  return true;
}();

TEST(Parity, NothingIsMeasuredThatNoLongerExists) {
  ASSERT_FALSE(golden().empty()) << kNoGolden;
  for (const auto& [name, counts] : golden().cases) {
    EXPECT_NE(find_case(name), nullptr)
        << name << " is in tests/parity/golden/h200.json but no longer a case: remove it with "
        << "tests/parity/merge.py --prune";
  }
  for (const std::string& name : not_yet_measured()) {
    EXPECT_NE(find_case(name), nullptr) << name << " is in not_yet_measured.txt but no case";
  }
  for (const Exception& exception : golden().exceptions) {
    EXPECT_EQ(golden().cases.count(exception.name), 1u)
        << "tests/parity/exceptions.json: " << exception.name << " has no measurement";
  }
}

// Files of which some measured line has changed since, so that only totals are compared, and why
// they have not been measured again. None today.
const std::map<std::string, std::string> kOnlyTotals = {};

struct MeasuredLines {
  int in_all = 0, compared = 0;
  std::set<std::string> changed_files;
};
// How many lines of a measurement the test compares. The model's own counts do not matter for that.
MeasuredLines measured_lines(const Golden& golden) {
  MeasuredLines result;
  for (const auto& [name, counts] : golden.cases) {
    std::set<std::tuple<std::string, std::string, std::string>> lines;
    for (const LineCounts& line : counts.lines) lines.insert({line.op, line.file, line.text});
    result.in_all += static_cast<int>(lines.size());
    const Comparison comparison = compare(counts, counts);
    result.compared += comparison.compared_lines;
    for (const std::string& note : comparison.notes) {
      result.changed_files.insert(note.substr(0, note.find(' ')));
    }
  }
  return result;
}

// An edit must not remove lines from the comparison unnoticed.
TEST(Parity, EveryMeasuredLineIsCompared) {
  ASSERT_FALSE(golden().empty()) << kNoGolden;
  const MeasuredLines lines = measured_lines(golden());
  std::set<std::string> known;
  for (const auto& [file, why] : kOnlyTotals) known.insert(file);
  EXPECT_EQ(lines.changed_files, known)
      << "changed since it was measured: run tests/parity/run_ncu.sh on a GPU (docs/parity.md), or "
      << "name the file in kOnlyTotals and say why not";
  EXPECT_GT(lines.in_all, 0);
  if (known.empty()) {
    EXPECT_EQ(lines.compared, lines.in_all);
  }
}

TEST(Parity, CaseNamesAreDistinct) {
  std::map<std::string, int> count;
  for (const Case& one : all_cases()) ++count[one.name];
  for (const auto& [name, times] : count) EXPECT_EQ(times, 1) << name;
}

TEST(Parity, CopiesCountOnBothSides) {
  const Case* one = find_case("chapter-4/sgemm/async_copy");
  ASSERT_NE(one, nullptr);
  ASSERT_EQ(one->size, (Size{128, 256, 96}));
  const CaseCounts copies = trace_case(*one, one->size);
  // A once for each of two tiles' columns, B once: 32 bytes a sector.
  EXPECT_EQ(copies.totals.at("global_async_load").sectors, (2 * 128 * 96 + 96 * 256) * 4u / 32);
  // Each of A's copies reads four rows of a warp in four passes; B's have no conflicts.
  EXPECT_EQ(copies.totals.at("shared_async_store").conflicts, 2 * 128 * 96 / 32 * 3u);
  EXPECT_EQ(copies.totals.count("global_load"), 0u);

  const Case* tma = find_case("chapter-0/wgmma_bf16/wgmma");
  ASSERT_NE(tma, nullptr);
  EXPECT_EQ(trace_case(*tma, tma->size).totals.count("global_async_load"), 0u);
}

// ---- the test itself can fail -----------------------------------------------------------------

constexpr const char* kCase = "kernels/transpose_32x32";

/// What the SIMT backend counts, taken for a measurement.
Golden measured_by_the_model() {
  const Case* one = find_case(kCase);
  Golden golden;
  golden.cases[kCase] = trace_case(*one, one->size);
  return golden;
}

class ParityVerdict : public testing::Test {
 protected:
  Golden golden = measured_by_the_model();
  CaseCounts& measured = golden.cases.at(kCase);
  CaseCounts simt = measured;

  Verdict judged() const { return judge(kCase, simt, golden); }
};

TEST_F(ParityVerdict, EqualNumbersPass) {
  const Verdict verdict = judged();
  EXPECT_TRUE(verdict.failures.empty());
  EXPECT_TRUE(verdict.explained.empty());
  EXPECT_TRUE(verdict.notes.empty());
  // Whatever the golden file holds, these are the numbers of 64 x 64 through a [32][32] tile.
  EXPECT_EQ(simt.totals.at("global_load").sectors, 512u);
  EXPECT_EQ(simt.totals.at("global_store").sectors, 512u);
  EXPECT_EQ(simt.totals.at("shared_load").conflicts, 3968u);
  EXPECT_EQ(simt.totals.at("shared_store").conflicts, 0u);
}

TEST_F(ParityVerdict, WrongTotalFails) {
  for (const Compared& what : compared()) {
    measured = simt;
    measured.totals[what.op].*what.value += 1;
    const Verdict verdict = judged();
    ASSERT_EQ(verdict.failures.size(), 1u) << what.op;
    EXPECT_CONTAINS(verdict.failures[0], fmt::format("{} {} in all", what.op, what.counter));
  }
}

TEST_F(ParityVerdict, WrongLineFailsThoughTotalsAgree) {
  for (LineCounts& line : measured.lines) {
    if (line.op == "shared_load") line.counts.conflicts -= 1;
  }
  const Verdict verdict = judged();
  ASSERT_EQ(verdict.failures.size(), 1u);
  EXPECT_CONTAINS(verdict.failures[0], "`const float value = tile[x][y];`");
  EXPECT_CONTAINS(verdict.failures[0], "counts 3968, the hardware 3967");
}

TEST_F(ParityVerdict, LineThatTheModelDoesNotNameFails) {
  simt.lines.clear();
  EXPECT_EQ(judged().failures.size(), 3u);  // conflict-free stores: 0 both ways
}

TEST_F(ParityVerdict, ChangedSourceLeavesTheTotals) {
  LineCounts& line = measured.lines.front();
  line.text = "a line that the file no longer has";
  line.counts.sectors += 7;
  Verdict verdict = judged();
  EXPECT_TRUE(verdict.failures.empty());
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_CONTAINS(verdict.notes[0], "kernels.cuh has changed");
  measured.totals["global_load"].sectors += 7;
  EXPECT_EQ(judged().failures.size(), 1u);
}

TEST_F(ParityVerdict, LinesThatAreNotComparedAreCounted) {
  const MeasuredLines whole = measured_lines(golden);
  EXPECT_EQ(whole.in_all, 4);  // a load and a store of each memory
  EXPECT_EQ(whole.compared, 4);
  EXPECT_TRUE(whole.changed_files.empty());
  measured.lines.front().text = "a line that the file no longer has";
  const MeasuredLines changed = measured_lines(golden);
  EXPECT_EQ(changed.in_all, 4);
  EXPECT_EQ(changed.compared, 0);
  EXPECT_EQ(changed.changed_files, (std::set<std::string>{"tests/parity/kernels.cuh"}));
}

TEST_F(ParityVerdict, MissingMeasurementFails) {
  const Verdict verdict = judge("kernels/no_such_case", simt, golden);
  ASSERT_EQ(verdict.failures.size(), 1u);
  EXPECT_CONTAINS(verdict.failures[0], "has no measurement");
}

TEST_F(ParityVerdict, ExceptionExplainsExactlyOneNumber) {
  measured.totals["shared_load"].conflicts = 1;
  const auto failures = [&] { return judged().failures; };

  golden.exceptions = {{kCase, "shared_load", "", 3968, 1, "the compiler fused four loads"}};
  const Verdict verdict = judged();
  EXPECT_TRUE(verdict.failures.empty());
  ASSERT_EQ(verdict.explained.size(), 1u);
  EXPECT_CONTAINS(verdict.explained[0], "the compiler fused four loads");

  golden.exceptions[0].why = "";
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_CONTAINS(failures()[0], "does not say why");

  golden.exceptions[0] = {kCase, "shared_load", "", 4000, 1, "made for another number"};
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_CONTAINS(failures()[0], "was made for 4000 and 1");

  golden.exceptions[0] = {kCase, "shared_load", "", 3968, 1, "the compiler fused four loads"};
  measured.totals["shared_load"].conflicts = 3968;
  ASSERT_EQ(failures().size(), 1u);
  EXPECT_CONTAINS(failures()[0], "is not needed");

  // Another version of g++ may not split the line: any count from the hardware's up is accepted.
  const auto failures_with = [&](int gcc) {
    return judge(kCase, simt, golden, gcc).failures.size();
  };
  golden.exceptions[0] = {kCase, "shared_load", "", 3900, 3968, "g++ splits the load", true};
  EXPECT_EQ(failures_with(13), 0u);
  golden.exceptions[0].hardware = measured.totals["shared_load"].conflicts = 3000;
  EXPECT_EQ(failures_with(13), 0u);
  EXPECT_EQ(failures_with(12), 1u);  // it is pinned there
  golden.exceptions[0].simt = 3968;
  EXPECT_EQ(failures_with(12), 0u);
  golden.exceptions[0].hardware = measured.totals["shared_load"].conflicts = 4000;
  EXPECT_EQ(failures_with(13), 1u);  // fewer than the hardware
  golden.exceptions[0].hardware = 3000;
  EXPECT_EQ(failures_with(13), 1u);  // made for another number of the hardware's
}

TEST(ParityGolden, IsReadBackAsWritten) {
  const Folder folder;
  const std::string file = folder / "golden.json", exceptions = folder / "exceptions.json";
  const Golden written = measured_by_the_model();
  std::ofstream(file) << Json{{"schema", 1},
                              {"device", {{"name", "a GPU"}, {"sm_count", 7}}},
                              {"cases", {{kCase, to_json(written.cases.at(kCase))}}}};
  std::ofstream(exceptions)
      << R"([{"case": "a", "op": "b", "simt": 3, "hardware": 4, "why": "c"}])";
  const Golden golden = Golden::load(file, exceptions);
  EXPECT_EQ(golden.device, "a GPU");
  EXPECT_EQ(golden.sm_count, 7);
  EXPECT_TRUE(judge(kCase, written.cases.at(kCase), golden).failures.empty());
  ASSERT_EQ(golden.exceptions.size(), 1u);
  EXPECT_EQ(golden.exceptions[0].simt, 3u);
  EXPECT_EQ(golden.exceptions[0].hardware, 4u);

  std::ofstream(file) << "{\"cases\": ";
  EXPECT_THROW(Golden::load(file, exceptions), std::runtime_error);
  std::filesystem::remove(file);
  EXPECT_TRUE(Golden::load(file, exceptions).empty());
}

}  // namespace
}  // namespace cookbook::parity
