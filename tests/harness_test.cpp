// SPDX-License-Identifier: MIT
// The harness itself: narrow types, inputs, claims, verdicts, command line, JSON.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "common/backend/device_bytes.hpp"
#include "common/harness/contract/tokens.hpp"
#include "common/harness/report/console.hpp"
#include "common/harness/report/rates.hpp"
#include "common/harness/report/result.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/plan.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/run/request.hpp"
#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/claims_check.hpp"
#include "tests/folder.hpp"
#include "tests/planted/reverse.hpp"
#include "tests/ended_run.hpp"
#include "tests/error_of.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

using planted::Bug;

HostTensor one_element(DType dtype) { return HostTensor({"x", dtype, 1, 1, 1, Role::input}); }

TEST(Tensor, NarrowTypesRoundToNearestEven) {
  HostTensor half = one_element(DType::f16);
  HostTensor bfloat = one_element(DType::bf16);
  auto through = [](HostTensor& tensor, double value) {
    tensor.set(0, 0, value);
    return tensor.at(0, 0);
  };
  EXPECT_EQ(through(half, 1 + 0x1p-11), 1);               // tie, to even
  EXPECT_EQ(through(half, 1 + 3 * 0x1p-11), 1 + 0x1p-9);  // tie, to even
  EXPECT_EQ(through(half, 65519), 65504);
  EXPECT_EQ(through(half, 65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(through(half, 0x1p-24), 0x1p-24);  // smallest denormal
  EXPECT_EQ(through(half, 0x1p-25), 0);
  EXPECT_EQ(through(bfloat, 1 + 0x1p-8), 1);
  EXPECT_EQ(through(bfloat, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(through(bfloat, -0x1p-133), -0x1p-133);
  EXPECT_TRUE(std::isnan(through(bfloat, std::nan(""))));
  EXPECT_TRUE(std::signbit(through(half, -0.0)));
}

TEST(Tensor, EveryBitPatternOfANarrowTypeSurvives) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    HostTensor tensor = one_element(dtype);
    HostTensor again = one_element(dtype);
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      tensor.data<std::uint16_t>()[0] = static_cast<std::uint16_t>(bits);
      if (std::isnan(tensor.at(0, 0))) continue;
      again.set(0, 0, tensor.at(0, 0));
      ASSERT_EQ(again.data<std::uint16_t>()[0], bits);
    }
  }
}

TEST(Inputs, AreRepeatableAndHaveWhatTheirNameSays) {
  for (const InputKind kind : all_input_kinds()) {
    HostTensor a({"in", DType::f32, 5, 7, 9, Role::input});
    HostTensor b = a;
    draw(a, kind, 3);
    draw(b, kind, 3);
    EXPECT_EQ(a.storage, b.storage);
    draw(b, kind, 4);
    EXPECT_NE(a.storage, b.storage) << input_kind_name(kind);
    int nans = 0, infinities = 0, distinct_from_zero = 0;
    for (int row = 0; row < 5; ++row) {
      // Padding: NaNs that differ from those in the padding of an output.
      EXPECT_TRUE(row == 4 || (std::isnan(a.at(row, 7)) && !is_poison(a, row, 7)));
      EXPECT_TRUE(row == 4 || a.data<std::uint32_t>()[9 * row + 7] != a.data<std::uint32_t>()[8]);
      for (int col = 0; col < 7; ++col) {
        nans += std::isnan(a.at(row, col));
        infinities += std::isinf(a.at(row, col));
        distinct_from_zero += a.at(row, col) != 0;
      }
    }
    EXPECT_EQ(nans, kind == InputKind::one_nan);
    EXPECT_EQ(infinities, kind == InputKind::one_inf);
    EXPECT_GT(distinct_from_zero, 0);
  }
}

TEST(Inputs, CancellationComesInPairsThatCancel) {
  HostTensor a({"in", DType::f32, 3, 9, 9, Role::input});
  draw(a, InputKind::cancellation, 3);
  for (int row = 0; row < 3; ++row) {
    for (int col = 0; col < 8; col += 2) {
      EXPECT_GE(a.at(row, col), 1);
      EXPECT_LE(std::fabs(a.at(row, col) + a.at(row, col + 1)), 0.02) << row << ", " << col;
      EXPECT_NE(a.at(row, col), -a.at(row, col + 1));
    }
  }
  EXPECT_NE(a.at(0, 0), a.at(1, 0));
  EXPECT_NE(a.at(0, 0), a.at(0, 2));
}

// Three of four are denormal, by up to a factor of 4: the others are ordinary numbers.
TEST(Inputs, DenormalsAreJustBelowTheSmallestNormalNumber) {
  for (const auto& [dtype, smallest] : {std::pair{DType::f32, 0x1p-126},
                                        {DType::bf16, 0x1p-126},
                                        {DType::f16, 0x1p-14},
                                        {DType::f64, 0x1p-1022},
                                        {DType::e4m3, 0x1p-6},
                                        {DType::e5m2, 0x1p-14}}) {
    HostTensor a({"in", dtype, 1, 4096, 4096, Role::input});
    draw(a, InputKind::denormals, 3);
    int small = 0, normal = 0;
    double most = 0;
    for (int col = 0; col < 4096; ++col) {
      const double x = std::fabs(a.at(0, col));
      if (x < smallest) {
        ++small;
        most = std::max(most, x);
      } else {
        normal += x > 2 * smallest;
      }
    }
    EXPECT_GT(small, 2900) << dtype_name(dtype);
    EXPECT_GT(normal, 900) << dtype_name(dtype);
    EXPECT_GT(most, 0.6 * smallest) << dtype_name(dtype);
  }
}

// Lengths and addresses around the words that hashing and filling work in.
TEST(DeviceBytes, EveryByteCountsAndItsPlaceToo) {
  for (const std::size_t bytes : {1, 2, 3, 4, 7, 8, 9, 16, 4099}) {
    for (const std::size_t misalign : {0, 2, 4}) {
      DeviceMemory memory(bytes, "bytes", misalign);
      std::vector<unsigned char> content(bytes);
      for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<unsigned char>(3 * i + 1);
      memory.copy_from_host(content.data(), bytes);
      const std::uint64_t hash = hash_bytes(memory.data(), bytes);
      EXPECT_EQ(hash_bytes(memory.data(), bytes), hash);
      for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
        const unsigned char other = content[at] ^ 0x80;
        memory.copy_from_host(&other, 1, at);
        EXPECT_NE(hash_bytes(memory.data(), bytes), hash) << at << " of " << bytes;
        memory.copy_from_host(&content[at], 1, at);
      }
      EXPECT_EQ(hash_bytes(memory.data(), bytes), hash);
      if (bytes < 16) continue;
      std::vector<unsigned char> swapped = content;  // the same words in another order
      std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
      memory.copy_from_host(swapped.data(), bytes);
      EXPECT_NE(hash_bytes(memory.data(), bytes), hash);
    }
  }
}
// Two changes, such as two signs or two swapped words, must not cancel in a hash that adds terms.
TEST(DeviceBytes, TwoChangesDoNotCancel) {
  constexpr std::size_t kWords = 64;
  DeviceMemory memory(kWords * sizeof(float), "words");
  std::vector<float> content(kWords);
  for (std::size_t i = 0; i < kWords; ++i) content[i] = 0.5f + static_cast<float>(i % 7);
  auto hash = [&](const std::vector<float>& words) {
    memory.copy_from_host(words.data(), memory.bytes());
    return hash_bytes(memory.data(), memory.bytes());
  };
  std::set<std::uint64_t> seen = {hash(content)};
  std::size_t variants = 1;
  for (std::size_t a = 0; a < kWords; ++a) {
    for (std::size_t b = a + 1; b < kWords; ++b) {
      std::vector<float> negated = content, next = content, swapped = content;
      negated[a] = -negated[a], negated[b] = -negated[b];
      next[a] = std::nextafter(next[a], 100.0f), next[b] = std::nextafter(next[b], 0.0f);
      std::swap(swapped[a], swapped[b]);
      seen.insert(hash(negated));
      seen.insert(hash(next));
      variants += 2;
      if (content[a] == content[b]) continue;
      seen.insert(hash(swapped));
      ++variants;
    }
  }
  EXPECT_EQ(seen.size(), variants);
}
TEST(DeviceBytes, FillingWritesTheElementsAndNothingElse) {
  for (const std::size_t width : {2, 4}) {
    for (const std::size_t count : {0, 1, 31, 4097}) {
      DeviceMemory memory(count * width, "filled", width);
      fill_elements(memory.data(), count, width, 0x7fadbeef);
      std::vector<unsigned char> content(count * width);
      memory.copy_to_host(content.data(), content.size());
      for (std::size_t i = 0; i < content.size(); ++i) {
        ASSERT_EQ(content[i], (0x7fadbeefu >> (8 * (i % width))) & 0xff) << i;
      }
      EXPECT_TRUE(memory.guards_intact());
    }
  }
}

TEST(Claims, SpeedIsOpenUntilMeasuredAndFalseWhenMissed) {
  LevelResult level;
  ClaimResult claim;
  claim.claim = faster_than_previous(1.5);
  check_speed_claim(claim, level, "NVIDIA H200", "");
  EXPECT_FALSE(claim.holds.has_value());  // null, never true
  level.vs_previous = Ratio{1.4, 1.39, 1.41};
  check_speed_claim(claim, level, "NVIDIA H200", "");
  EXPECT_EQ(claim.holds, false);
  level.vs_previous = Ratio{1.6, 1.59, 1.61};
  check_speed_claim(claim, level, "NVIDIA H200", "");
  EXPECT_EQ(claim.holds, true);
}

TEST(Claims, SpeedIsFalseOnlyOnTheGpuItWasClaimedFor) {
  LevelResult level;
  level.vs_previous = Ratio{1.018, 1.01, 1.02};
  const auto checked = [&](const Claim& claim, const std::string& device) {
    ClaimResult result;
    result.claim = claim;
    check_speed_claim(result, level, device, "H200");
    level.claims = {result};
    return result;
  };
  const Claim claim = faster_than_previous(1.02);
  EXPECT_EQ(checked(claim, "NVIDIA H200").holds, false);
  EXPECT_FALSE(is_right(level));
  const ClaimResult elsewhere = checked(claim, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(elsewhere.holds, std::nullopt);
  EXPECT_EQ(elsewhere.measured, "1.018 here; 1.02 claimed on H200");
  EXPECT_TRUE(is_right(level));
  EXPECT_EQ(checked(faster_than_previous(1.01), "NVIDIA H100 80GB HBM3").holds, true);
  // A claim for that very GPU is held against it, and no longer against the chapter's.
  EXPECT_EQ(checked(for_gpu("H100", claim), "NVIDIA H100 80GB HBM3").holds, false);
  EXPECT_EQ(checked(for_gpu("H100", claim), "NVIDIA H200").holds, std::nullopt);
}

TEST(Result, AboveItsRoofOrAFalseClaimIsNotAllRight) {
  LadderResult result;
  result.levels.resize(1);
  EXPECT_TRUE(result.all_right());
  result.levels[0].roof_fraction = 1.04;
  EXPECT_FALSE(result.all_right());
  result.levels[0].roof_fraction = 1.02;
  EXPECT_TRUE(result.all_right());
  result.levels[0].findings = {{Fault::race, "race"}};
  EXPECT_FALSE(result.all_right());
  result.levels[0].findings.clear();
  result.levels[0].claims.resize(1);
  EXPECT_TRUE(result.all_right());
  result.levels[0].claims[0].holds = false;
  EXPECT_FALSE(result.all_right());
}

// Neither by its place in the list nor by its sentence.
TEST(Result, ACountFindsItsClaimByWhatTheClaimIsAbout) {
  std::vector<ClaimResult> claims(2);
  claims[0].claim = global_loads("in").coalesced();
  claims[1].claim = global_loads("out").coalesced();
  claims[1].claim.text = claims[0].claim.text;
  ClaimResult counted = claims[1];
  counted.holds = false, counted.checked_by = "simt", counted.measured = "2";
  nlohmann::json list{to_json(counted), to_json(claims[0])};
  enter_counts(list, claims);
  EXPECT_EQ(claims[0].holds, std::nullopt);
  EXPECT_EQ(claims[1].holds, false);
  EXPECT_EQ(claims[1].measured, "2");
  EXPECT_EQ(check_of(claims[0]).fault, Fault::not_counted);
  EXPECT_EQ(check_of(claims[1]).fault, Fault::false_claim);
  counted.claim.value = 3;  // another claim
  list = nlohmann::json::array({to_json(counted)});
  EXPECT_THROW(enter_counts(list, claims), std::runtime_error);
}

TEST(Verdict, EveryFaultHasANameAndAStatus) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Fault::no_answer); ++i) {
    const auto fault = static_cast<Fault>(i);
    EXPECT_TRUE(names.insert(fault_name(fault)).second) << fault_name(fault);
    EXPECT_EQ(fault_named(fault_name(fault)), fault);
    const CheckResult check(fault, fault == Fault::none ? "" : "why");
    EXPECT_EQ(check.status == CheckResult::Status::ok, fault == Fault::none);
    const CheckResult there = nlohmann::json(check);
    EXPECT_EQ(there.fault, fault);
    EXPECT_EQ(there.status, check.status);
    EXPECT_EQ(there.reason, check.reason);
  }
  EXPECT_THROW(fault_named("racy"), std::invalid_argument);
  EXPECT_EQ(CheckResult(Fault::hang, "no end").text(), "hung: no end");
}

TEST(Tokens, AreKnownByTheLastFolderAndTheNameOfAFile) {
  enter_tokens({{"harness_test/level.cuh", "0123"}});
  EXPECT_EQ(token_hash("/anywhere/harness_test/level.cuh"), "0123");
  EXPECT_EQ(token_hash("harness_test/level.cuh"), "0123");
  EXPECT_EQ(token_hash("elsewhere/level.cuh"), "");
}

TEST(Process, WhatDoesNotStartOrWritesNothingIsNamed) {
  EXPECT_EQ(error_of<std::runtime_error>([] { run_program({"/no/such/program"}); }),
            "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(error_of<std::runtime_error>([] { run_for_json("/bin/false", {}); }),
            "/bin/false ended with status 1 and wrote no result");
}

TEST(Request, CarriesEveryOption) {
  Options all;
  all.list = all.check = all.explain = all.no_trace = all.all = true;
  all.levels = {"a", "b"}, all.sizes = {"4x64"};
  all.ladder = "ladder", all.json = "json", all.draw = "draw";
  all.launches = "launches", all.timeline = "timeline";
  all.profile = all.energy = all.describe = all.in_process = true;
  all.exercise = 3, all.seed = UINT64_MAX, all.seconds = 1.5, all.time_limit = 7;
  all.benchmark_arguments = {"--benchmark_x"};
  for (const Options& options : {all, Options{}}) {
    Options there = options == all ? Options{} : all;
    nlohmann::json::parse(nlohmann::json(options).dump()).get_to(there);
    EXPECT_EQ(there, options) << nlohmann::json(options);
  }
}

// --- the command line, as a user meets it --------------------------------------------------------

/// A chapter with the planted bug, and as many exercises.
template <Bug kBug = Bug::none>
Chapter reverse_chapter(std::size_t exercises = 0) {
  Chapter chapter = chapter_of({planted::reverse_ladder<kBug>()});
  chapter.exercises.assign(exercises, chapter.ladders[0].levels[0]);
  return chapter;
}

template <Bug kBug = Bug::none>
Ended chapter(const std::vector<std::string>& arguments, std::size_t exercises = 0) {
  return run_captured(reverse_chapter<kBug>(exercises), arguments);
}

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_usage_error(const Ended& outcome, const std::string& words) {
  EXPECT_EQ(outcome.status, 2);
  EXPECT_CONTAINS(outcome.err, words);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(CommandLine, BadUsageIsOneLineAndExit2) {
  expect_usage_error(chapter({"--no-such-option"}), "--no-such-option");
  expect_usage_error(chapter({"--ladder", "rope"}), "no ladder 'rope'; this chapter has: reverse");
  expect_usage_error(chapter({"--level", "7"}),
                     "no level '7' in ladder reverse; it has: 0 reverse");
  expect_usage_error(chapter({"--size", "12x"}),
                     "--size takes 2 positive whole numbers joined by x");
  expect_usage_error(chapter({"--size", "0x64"}), "got '0x64'");
  expect_usage_error(chapter({"--size", "-4"}), "--size");
  expect_usage_error(chapter({"--size", "4x4x4"}), "(rows x cols), such as 4x64; got '4x4x4'");
  expect_usage_error(chapter({"--size", "4x1000"}), "reverse takes at most 256 columns");
  expect_usage_error(chapter({"--size", "1099511627776x256"}), "GiB");
  expect_usage_error(chapter({"--size", "4x64", "--size", "bogus"}), "got 'bogus'");
  expect_usage_error(chapter({"--level", "nothing"}), "no level 'nothing' in ladder reverse");
  expect_usage_error(chapter({"--json", "/dev/null/x.json"}),
                     "cannot write /dev/null/x.json: Not a directory");
  expect_usage_error(chapter({"--exercise", "1"}), "no graded exercise");
#if COOKBOOK_SIMT
  expect_usage_error(chapter({"--benchmark_filter=x"}), "need the CUDA backend");
  expect_usage_error(chapter({"--seconds", "0.5"}), "needs the CUDA backend");
  for (const char* wrong : {"0", "-1", "nan", "1001"}) {
    expect_usage_error(chapter({"--seconds", wrong}), "--seconds: takes more than 0");
  }
#endif
}

TEST(CommandLine, AnExerciseThatIsNotThereAndASeedThatIsNone) {
  for (const char* wrong : {"0", "-1", "3", "x", "1x", "99999999999999999999"}) {
    const Ended outcome = chapter({"--exercise", wrong}, 2);
    expect_usage_error(outcome, std::string("--exercise: takes 1 or 2; got '") + wrong + "'");
    EXPECT_EQ(outcome.out, "");
  }
  expect_usage_error(chapter({"--exercise", "2"}, 1), "--exercise: takes 1; got '2'");
  expect_usage_error(chapter({"--exercise", "4"}, 3), "--exercise: takes 1 to 3; got '4'");
  for (const char* wrong : {"-1", "1.5", "x", "1x", "18446744073709551616"}) {
    expect_usage_error(chapter({"--list", "--seed", wrong}), "--seed: takes a whole number");
  }
  // Decimal, whatever it begins with.
  EXPECT_CONTAINS(chapter({"--size", "4x64", "--no-trace", "--check", "--seed", "010"}).out,
                  "seed 10");
  EXPECT_EQ(chapter({"--list", "--seed", "18446744073709551615"}).status, 0);
}

// They would be ignored: a grade is of one exercise, under the tracer too.
TEST(CommandLine, AnExerciseGoesWithNoChoiceOfLevels) {
  for (const Words& other :
       {Words{"--explain"}, Words{"--level", "0"}, Words{"--ladder", "reverse"}, Words{"--list"},
        Words{"--all"}, Words{"--check"}, Words{"--no-trace"}}) {
    const Ended outcome = chapter(joined({"--exercise", "1"}, other), 1);
    expect_usage_error(outcome, other[0] + " excludes --exercise");
    EXPECT_EQ(outcome.out, "");
  }
}

// Some sizes alone do not show that an exercise is solved, even if all of them are right. Nor does
// a program without its traced twin, which this chapter does not have.
TEST(CommandLine, AGradeThatIsNotCompleteIsNoPass) {
  for (const bool all_sizes : {false, true}) {
    const EndedRun outcome =
        run_with_json(reverse_chapter(1),
                      joined({"--exercise", "1"}, all_sizes ? Words{} : Words{"--size", "4x64"}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_CONTAINS(outcome.out, all_sizes ? "exercise 99.1: right without the tracer; build "
                                             "chapter-99-traced for the grade\n"
                                           : "exercise 99.1: right at these sizes; run without "
                                             "--size for the grade\n");
    EXPECT_EQ(outcome.json.at("passed"), false);
    EXPECT_EQ(outcome.json.at("complete"), false);
    EXPECT_FALSE(outcome.json.at("checks").empty());
    for (const auto& check : outcome.json.at("checks")) {
      EXPECT_EQ(check.at("passed"), true) << check;
      const std::string what = check.at("check");
      EXPECT_TRUE(all_sizes || what.rfind("4x64", 0) == 0) << what << ": was not asked for";
    }
  }
  const Ended wrong = chapter<Bug::off_by_one>({"--exercise", "1", "--size", "4x64"}, 1);
  EXPECT_EQ(wrong.status, 1);
  EXPECT_CONTAINS(wrong.out, "exercise 99.1: not yet\n");
  EXPECT_CONTAINS(wrong.out, "\n  in ");  // the file to edit
}

TEST(CommandLine, AFileThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  const std::string nowhere = "/dev/null/x.json";
  const Ended graded = chapter({"--exercise", "1", "--json", nowhere}, 1);
  expect_usage_error(graded, "cannot write " + nowhere);
  EXPECT_EQ(graded.out, "");
  // A file that can be opened may still be on a full disk at the end.
  for (const std::size_t exercises : {0, 1}) {
    std::vector<std::string> arguments = {"--check", "--no-trace", "--json", "/dev/full"};
    if (exercises > 0) arguments = {"--exercise", "1", "--json", "/dev/full"};
    const Ended full = chapter(arguments, exercises);
    EXPECT_EQ(full.status, 1);
    EXPECT_EQ(full.err, "chapter-99: could not write all of /dev/full\n");
  }
}

TEST(CommandLine, FoldersThatAreMissingAreMade) {
  const EndedRun outcome = run_with_json(reverse_chapter(), {"--check", "--no-trace"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.json.is_object());
}

// A ladder that is right and, with a bug, one that is not.
template <Bug kBug = Bug::none>
Chapter two_ladders() {
  Chapter chapter =
      chapter_of({planted::reverse_ladder<Bug::none>(), planted::reverse_ladder<kBug>()});
  chapter.ladders[1].name = "second";
  return chapter;
}

TEST(Plan, ALadderThatIsNotRunIsNamedWithItsReason) {
  Chapter both = two_ladders();
  both.ladders[1].name = "one_row";
  both.ladders[1].dims = {"n"};
  Options options;
  options.sizes = {"8x128"};
  const RunPlan plan = make_plan(both, options, Purpose::check);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].size, (Size{8, 128}));
  ASSERT_EQ(plan.left_out.size(), 1u);
  EXPECT_EQ(plan.left_out[0].find("ladder one_row is not run at 8x128: --size takes 1 positive"),
            0u)
      << plan.left_out[0];
}

TEST(Plan, ALadderThatCannotBeRightIsRefusedInOneLine) {
  const auto refusal = [](const Chapter& chapter) -> std::string {
    try {
      require_sound(chapter);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  Chapter chapter = two_ladders();
  EXPECT_EQ(refusal(chapter), "");
  Chapter wrong = chapter;
  Ladder& second = wrong.ladders[1];
  second.levels.push_back(second.levels[0]);
  second.levels[1].source = "a/level_1_other.cuh";
  EXPECT_NE(refusal(wrong).find("two levels of second are called"), std::string::npos);
  EXPECT_NE(refusal(wrong).find("and level_1_other.cuh; .name must be the file's"),
            std::string::npos);
  wrong = chapter;
  wrong.ladders[1].check_size = {7};
  EXPECT_EQ(refusal(wrong).find("ladder.hpp: check_size = 7 of second: it must have "), 0u)
      << refusal(wrong);
  wrong = chapter;
  Ladder& first = wrong.ladders[0];
  first.test_sizes.push_back({7, 7});
  first.make_problem = [make = first.make_problem](const Size& size, const Variant& variant) {
    if (size[0] == 7) throw BadSize("takes no 7");
    return make(size, variant);
  };
  EXPECT_EQ(refusal(wrong),
            "ladder.hpp: test_sizes = 7x7 of " + first.name + ": the problem takes no 7");
  Options options;
  options.sizes = {"7x64"};
  options.ladder = first.name;
  try {
    make_plan(wrong, options, Purpose::check);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--size 7x64: the problem takes no 7");
  }
}

TEST(Plan, EveryRunKnowsTheRoofsThatAllLaddersNeed) {
  Chapter both = two_ladders();
  both.ladders[1].roof = Roof::fp32;
  Options options;
  const RunPlan all = make_plan(both, options, Purpose::time);
  ASSERT_EQ(all.runs.size(), 2u);
  for (const LadderRun& run : all.runs) EXPECT_EQ(run.roofs, needed_roofs({Roof::fp32}));
  options.ladder = both.ladders[0].name;  // of bytes
  EXPECT_EQ(make_plan(both, options, Purpose::time).runs.at(0).roofs, needed_roofs({}));
}

TEST(CommandLine, NumbersArriveWhole) {
  const Chapter one = reverse_chapter();
  Options options;
  const auto parse = [&](int argc, char** argv) { return parse_options(one, argc, argv, options); };
  EXPECT_EQ(called_with({"reverse", "--time-limit", "7", "--seed", "18446744073709551615"}, parse),
            std::nullopt);
  EXPECT_EQ(options.time_limit, 7u);
  EXPECT_EQ(options.seed, 18446744073709551615u);
  const EndedRun outcome =
      run_with_json(one, {"--check", "--no-trace", "--seed", "18446744073709551615"});
  EXPECT_EQ(outcome.status, 0);
  const auto& run = outcome.json.at("runs").at(0);
  EXPECT_EQ(run.at("seed").get<std::uint64_t>(), 18446744073709551615u);
}

TEST(Plan, TheTimeLimitGrowsWithTheSizeUnlessItIsSet) {
  const Chapter one = reverse_chapter();
  Options options;
  options.sizes = {"4x64", "1x1", "10x64", "40x64", "40000x64", "400000x64"};
  const auto limits = [&] {
    std::vector<std::uint64_t> seconds;
    for (const LadderRun& run : make_plan(one, options, Purpose::check).runs) {
      seconds.push_back(run.isolation.seconds);
    }
    return seconds;
  };
  // At most 10,000 times as long, a week.
  EXPECT_EQ(limits(), (std::vector<std::uint64_t>{60, 60, 150, 600, 600000, 600000}));
  setenv("COOKBOOK_TIME_LIMIT", "7", 1);
  EXPECT_EQ(limits(), std::vector<std::uint64_t>(6, 7));
  options.time_limit = 3;
  EXPECT_EQ(limits(), std::vector<std::uint64_t>(6, 3));
  unsetenv("COOKBOOK_TIME_LIMIT");
  expect_usage_error(chapter({"--time-limit", "soon"}), "--time-limit: takes a whole number");
}

TEST(Console, FiguresHaveAUnitASizeAndALegend) {
  LadderResult result;
  result.backend = "simt";
  result.size = {64, 64};
  result.trace_size = {256, 192};
  LevelResult level;
  level.name = "level";
  level.counters = {{"global_load_requests", 1}, {"global_load_sectors", 4}};
  ClaimResult open;
  ClaimResult wrong;
  wrong.claim = global_loads("in").bytes(5242880);
  wrong.holds = false;
  level.claims = {open, wrong};
  result.levels = {level};
  const std::string out = stdout_of([&] { print_ladder(result); });
  EXPECT_CONTAINS(out, "Counters model the source as written, at 256x192, not at 64x64;");
  EXPECT_CONTAINS(out, "0/1 +1?");
  EXPECT_CONTAINS(out, "+1?: one that this run cannot check");
  EXPECT_CONTAINS(out, "shared: wavefronts of shared memory over the fewest possible");
  EXPECT_CONTAINS(out, "no roof was measured");
  result.levels[0].claims = {wrong};
  EXPECT_LACKS(stdout_of([&] { print_ladder(result); }), "+1?");
  result.backend = "cuda";  // whose times are of another size than the counts
  EXPECT_CONTAINS(stdout_of([&] { print_ladder(result); }), "at 256x192, not at 64x64;");
}

TEST(Console, WhatIsSkippedIsALinePerReason) {
  LadderResult result;
  result.backend = "simt";
  result.trace_size = {64, 64};
  result.levels.resize(4);
  for (std::size_t i = 0; i < 4; ++i) result.levels[i].name = std::string(1, "abcd"[i]);
  for (const auto print : {print_ladder, print_summary}) {
    result.levels[0].check = result.levels[2].check = {};
    result.levels[3].not_traced.clear();
    EXPECT_LACKS(stdout_of([&] { print(result); }), "Skipped");
    result.levels[0].check = result.levels[2].check = {Fault::unsupported, "cols must be even"};
    result.levels[3].not_traced = "rows must be odd";
    const std::string out = stdout_of([&] { print(result); });
    EXPECT_CONTAINS(out, "Skipped: 2 of 4 levels (cols must be even): a, c\n");
    EXPECT_CONTAINS(
        out,
        "Skipped: 1 of 4 levels (claims are not checked, as 64x64 is not supported: rows must be");
  }
}

TEST(Paths, AreSaidFromTheBooksFolder) {
  EXPECT_EQ(short_path(source_path("chapters/a/level_0.cuh")), "chapters/a/level_0.cuh");
  EXPECT_EQ(short_path("/elsewhere/mine/chapters/level_0.cuh"), "level_0.cuh");
}

TEST(Console, WhereAllLevelsDifferAtOneElementTheReferenceIsNamed) {
  LadderResult result;
  result.backend = "simt";
  result.levels.resize(2);
  const auto says = [&](const char* first, const char* second, Fault fault = Fault::wrong_result) {
    result.levels[0].check = {Fault::wrong_result, first};
    result.levels[1].check = {fault, second};
    return stdout_of([&] { print_ladder(result); });
  };
  const std::string hint = "All levels are wrong at out[0][3]: check reference_row()";
  EXPECT_CONTAINS(says("out[0][3]: got 1, expected 2", "out[0][3]: got 1.5, expected 2"), hint);
  EXPECT_LACKS(says("out[0][3]: got 1, expected 2", "out[0][30]: got 1, expected 2"), "All levels");
  EXPECT_LACKS(says("out[0][3]: got 1, expected 2", "", Fault::none), "All levels");
  EXPECT_LACKS(says("out[0][3]: got 1", "out[0][3]: got 1", Fault::crash), "All levels");
}

// A ladder with every kind of row, whose texts are longer than a line.
LadderResult long_ladder(const std::string& backend, const std::string& name) {
  const std::string reason =
      "out[12345][67890]: got 1.25, expected 1.5, which is further away "
      "than the bound of 0.001 allows\nand a second line of the same";
  LadderResult result;
  result.heading = "Chapter 99";
  result.ladder = "rows";
  result.title = "every kind of row, and a title that is as long as a line, so that it needs two";
  result.backend = backend;
  result.dtype = "bf16";
  result.layout = "bshd";
  result.size = {2, 16, 16, 123456, 123456, 128};
  result.trace_size = {1, 2, 2, 123456, 123456, 128};
  result.roofs = {{Roof::hbm_copy, 4294}};
  LevelResult level;
  level.name = name;
  level.cold = Timing{123456789, 0, 0, 9};
  level.gbps = 4043.5;
  level.roof_fraction = 0.941;
  level.vs_previous = Ratio{123.456, 120, 130};
  level.counters = {{"global_load_requests", 1},
                    {"global_load_sectors", 32},
                    {"global_load_bytes", 1048000},
                    {"async_load_bytes", 1048000}};
  ClaimResult claim;
  claim.claim = global_loads("in").bytes(5242880);
  claim.holds = true;
  level.claims.assign(12, claim);
  level.claims.resize(15);  // "12/12 +3?"
  LevelResult wrong = level, crashed = level, skipped = level, fast = level, refuted = level;
  wrong.check = {Fault::wrong_result, reason};
  crashed.check = {Fault::crash, reason};
  skipped.check = {Fault::unsupported, reason};
  skipped.cold.reset();
  crashed.findings = {{Fault::race, "race: " + reason}};
  fast.roof_fraction = 1.234;
  refuted.claims[0].holds = false;
  refuted.claims[0].checked_by = "simt";
  refuted.claims[0].measured = "5,242,881 bytes";
  refuted.vs_reference = Ratio{1.052, 1.051, 1.053};
  refuted.reference_name = "a library with a name";
  result.levels = {level, wrong, crashed, skipped, fast, refuted};
  ReferenceResult library{"a library with a name", {}, Timing{1234567, 0, 0, 9}, {}, 4043, {}};
  ReferenceResult absent{"absent", {Fault::unsupported, reason}, {}, {}, {}, {}};
  ReferenceResult mismatch{"mistaken", {Fault::wrong_result, reason}, {}, {}, {}, {}};
  result.references = {library, absent, mismatch};
  return result;
}

std::string printed(void (*print)(const LadderResult&), const LadderResult& result) {
  return stdout_of([&] { print(result); });
}

// Without line breaks and margins.
std::string unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string all;
  for (std::string word; words >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

TEST(Console, NoLineIsOver100Columns) {
  for (const char* backend : {"cuda", "simt"}) {
    for (const std::size_t length : {4, 12, 24, 33, 34, 60, 96}) {
      const LadderResult result = long_ladder(backend, std::string(length, 'n'));
      for (const auto print : {print_ladder, print_summary}) {
        const std::string text = printed(print, result);
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
          const auto columns =
              std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
          EXPECT_LE(columns, 100) << line;
          EXPECT_TRUE(line.empty() || line.back() != ' ' || print == print_ladder) << line;
        }
        for (const char* said :
             {"out[12345][67890]: got 1.25, expected 1.5, which is further away than the bound of "
              "0.001 allows and a second line of the same",
              "crashed: out[12345]", "race: out[12345]",
              "faster than its roof: the roof or the byte count is wrong",
              "claim is false: global loads of `in`: bytes = 5,242,880 (measured 5,242,881 bytes, "
              "checked by simt)"}) {
          EXPECT_CONTAINS(unwrapped(text), said);
        }
        if (print == print_summary || result.backend == "cuda") {  // libraries run on a GPU only
          EXPECT_CONTAINS(unwrapped(text), "outside this ladder's error bound: out[12345]");
        }
      }
    }
  }
}

TEST(Console, AClaimForAnotherGpuIsShownBesideAnyLadder) {
  LadderResult result;
  result.backend = "cuda";
  LevelResult& level = result.levels.emplace_back();
  level.name = "level";
  ClaimResult& claim = level.claims.emplace_back();
  claim.claim = faster_than_previous(1.02);
  EXPECT_EQ(printed(print_summary, result).find("another GPU"), std::string::npos);
  claim.measured = "1.018 here; 1.02 claimed on H200";
  for (const auto print : {print_ladder, print_summary}) {
    EXPECT_CONTAINS(
        unwrapped(printed(print, result)),
        "made for another GPU: time: at least 1.02x the previous level (1.018 here; 1.02 "
        "claimed on H200)");
  }
}

// To a terminal only: the line of the progress is erased once, by whoever writes next.
TEST(Console, ProgressIsErasedOnce) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
  ASSERT_GE(end, 0);
  dup2(end, STDERR_FILENO);
  {
    Progress progress;
    progress.clear();
    progress.show("one");
    progress.clear();
    progress.clear();
  }
  std::fputs(".", stderr);
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;  // which may come in several pieces
  char piece[256];
  while (text.find('.') == std::string::npos) {
    const ssize_t bytes = read(terminal, piece, sizeof piece);
    ASSERT_GT(bytes, 0) << text;
    text.append(piece, static_cast<std::size_t>(bytes));
  }
  EXPECT_EQ(text, "\r\033[Kone\r\033[K.");
  close(end);
  close(terminal);
}

TEST(Console, MoreThan100PercentOfARoofIsExplained) {
  LadderResult result = long_ladder("cuda", "short");
  const auto says = [&](double fraction) {
    for (LevelResult& level : result.levels) level.roof_fraction = fraction;
    return printed(print_ladder, result);
  };
  EXPECT_CONTAINS(says(1.02), "above 100 % of its roof: noise, because");
  EXPECT_LACKS(says(1.0004), "noise");
  EXPECT_LACKS(says(1.04), "noise");
  EXPECT_CONTAINS(says(1.04), "faster than its roof: the roof or the byte count is wrong");
}

TEST(Console, ABarIsDrawnWhereThereIsRoomForIt) {
  EXPECT_CONTAINS(printed(print_ladder, long_ladder("cuda", "short")), "███");
  const std::string narrow = printed(print_ladder, long_ladder("cuda", std::string(33, 'n')));
  EXPECT_LACKS(narrow, "█");
}

TEST(Console, ALineSaysWhetherALadderIsRight) {
  LadderResult result = long_ladder("cuda", "level");
  EXPECT_CONTAINS(printed(print_summary, result),
                  " 6 levels  FAIL, 1 skipped, best 4043.5 GB/s (94.2 %)\n");
  result.levels.resize(1);
  result.levels[0].cold.reset();  // as without a GPU
  result.references.clear();
  EXPECT_EQ(unwrapped(printed(print_summary, result)), "rows 2x16x16x123456x123456x128 1 level ok");
  result.levels[0].roof_fraction = 1.04;  // wrong, as for the exit status
  EXPECT_EQ(result.exit_status(), 1);
  EXPECT_CONTAINS(printed(print_summary, result), "FAIL");
}

#if COOKBOOK_SIMT
TEST(Claims, AFalseOneShowsTheDigitsInWhichItDiffers) {
  simt::Trace trace;
  trace.sites.resize(1);
  trace.sites[0].space = simt::Space::global;
  trace.sites[0].op = simt::Op::load;
  trace.sites[0].requests = 3;
  trace.sites[0].bytes = 5242881;
  const ClaimResult bytes = check_on_trace(global_loads().bytes(5242880), trace);
  EXPECT_EQ(bytes.holds, false);
  EXPECT_EQ(bytes.claim.text, "global loads: bytes = 5,242,880");
  EXPECT_EQ(bytes.measured, "5,242,881 bytes");
  trace.sites[0].sectors = 10000000;
  const ClaimResult ratio =
      check_on_trace(global_loads().sectors_per_request(10000000.5 / 3), trace);
  EXPECT_EQ(ratio.holds, false);
  EXPECT_CONTAINS(ratio.claim.text, "3.33333e+06");
  EXPECT_EQ(ratio.measured, "3333333.33333");
}
#endif

TEST(CommandLine, ARefusedCommandLeavesItsFileAsItWas) {
  const Folder folder;
  const std::string file = folder / "kept.json";
  for (const Words& arguments :
       {Words{"--size", "bad"}, Words{"--level", "7"}, Words{"--size", "4x1000"},
        Words{"--exercise", "1", "--size", "bad"}, Words{"--exercise", "1", "--size", "4x1000"}}) {
    const Words all = joined(arguments, {"--json", file});
    std::filesystem::remove(file);
    const Ended outcome = chapter(all, 1);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(file)) << arguments[0];
    std::ofstream(file) << "old";
    EXPECT_EQ(chapter(all, 1).status, 2);
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_EQ(text.str(), "old") << arguments[0];
  }
}

#if COOKBOOK_SIMT
TEST(CommandLine, ABadEnvironmentIsNoFaultOfAKernel) {
  const std::pair<const char*, std::vector<const char*>> wrong[] = {
      {"COOKBOOK_SIMT_ASYNC", {"foo", "random:", "random:x", "random:1x", "late:1"}},
      {"COOKBOOK_SIMT_ORDER", {"backward", "random:", "random:x", "random:1x", "reverse:1"}},
      {"COOKBOOK_SIMT_WORKERS", {"abc", "0", "257", "-1", "2x", " 2"}},
      {"COOKBOOK_SIMT_DEVICE", {"x", "rtx", "rtx 4090"}},
      {"COOKBOOK_SIMT_SMS", {"0", "x"}},
      {"COOKBOOK_SIMT_SPIN_SECONDS", {"x", "0", "-5"}},
      {"COOKBOOK_TIME_LIMIT", {"x", "-5", "1s"}},
      {"COOKBOOK_SIMT_CC", {"9.0", "9"}},
      {"COOKBOOK_SIMT_L2_BYTES", {"50MB"}},
      {"COOKBOOK_SIMT_SMEM_BYTES", {"0"}}};
  for (const auto& [name, values] : wrong) {
    const char* old = std::getenv(name);
    const std::string before = old ? old : "";
    for (const char* value : values) {
      setenv(name, value, 1);
      const Ended outcome = chapter({"--check", "--no-trace"});
      expect_usage_error(outcome, std::string("chapter-99: ") + name + " takes ");
      EXPECT_CONTAINS(outcome.err, std::string("; got '") + value + "'");
      EXPECT_EQ(outcome.out, "");
    }
    setenv(name, before.c_str(), 1);  // empty is as good as unset
  }
  setenv("COOKBOOK_SIMT_ASYNC", "random:7", 1);
  setenv("COOKBOOK_SIMT_ORDER", "random:7", 1);
  EXPECT_EQ(chapter({"--list"}).status, 0);
  unsetenv("COOKBOOK_SIMT_ASYNC");
  unsetenv("COOKBOOK_SIMT_ORDER");
}
#endif

// --- the command lines of sidebar programs -------------------------------------------------------

Ended sidebar(const std::string& name, std::vector<std::string> arguments) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  arguments.insert(arguments.begin(), self.parent_path() / name);
  return ended_of([&] { return run_program(arguments); });
}

TEST(Sidebars, RefuseWhatTheyDoNotUnderstand) {
  std::istringstream names(COOKBOOK_SIDEBARS);
  int count = 0;
  for (std::string name; names >> name; ++count) {
    const Ended outcome = sidebar(name, {"--nosuch"});
    expect_usage_error(outcome, name + ": takes ");
    EXPECT_CONTAINS(outcome.err, "got '--nosuch'");
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_GE(count, 6);
  expect_usage_error(sidebar("chapter-4-block-order", {"foo"}), "takes no arguments; got 'foo'");
  for (const Words& arguments : {Words{"512", "512"}, Words{"512", "0", "512"},
                                 Words{"512", "512", "512x"}, Words{"512", "512", "512", "512"},
                                 Words{"512", "-512", "512"}, Words{"512", "512", "3000000000"}}) {
    expect_usage_error(sidebar("chapter-7-waves", arguments), "takes [M N K]...; got '512");
  }
  const Ended waves = sidebar("chapter-7-waves", {"512", "256", "64", "256", "512", "64"});
  EXPECT_EQ(waves.status, 0);
  EXPECT_CONTAINS(waves.out, "512 x 256 x 64");
  EXPECT_CONTAINS(waves.out, "256 x 512 x 64");
}

// Those that need a GPU share the functions tried here.
TEST(Sidebars, SizesOfOneWord) {
  // A fork would wait at its exit for worker threads that it has not got.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto sizes = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "chapter-2-registers");
    return called_with(arguments, [](int argc, char** argv) {
      return joined_sizes(argc, argv, {{1, 2, 3}});
    });
  };
  EXPECT_EQ(sizes({}), (std::vector<Size>{{1, 2, 3}}));
  EXPECT_EQ(sizes({"64", "5x6x7"}), (std::vector<Size>{{64, 64, 64}, {5, 6, 7}}));
  for (const char* wrong : {"foo", "4096x4096", "4096x", "x", "", "0", "-4", "4x4x4x4", "4x4x4k",
                            "4096 ", "3000000000"}) {
    EXPECT_EXIT(
        sizes({"64", wrong}), testing::ExitedWithCode(2),
        std::string("^chapter-2-registers: takes sizes such as .*; got '") + wrong + "'\n$");
  }
}

TEST(CommandLine, ListNamesEveryLevel) {
  const Ended outcome = chapter({"--list"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_CONTAINS(outcome.out, "one planted bug");
}

TEST(CommandLine, RightIsExit0AndJsonHasTheKeys) {
  const EndedRun outcome = run_with_json(reverse_chapter(), {"--check", "--no-trace"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.json.at("schema"), 1);
  const auto& run = outcome.json.at("runs").at(0);
  std::set<std::string> keys;
  for (const auto& [key, value] : run.items()) keys.insert(key);
  for (const char* key : {"chapter", "ladder", "title", "backend", "commit", "date", "seed",
                          "device", "problem", "roofs", "levels", "references"}) {
    EXPECT_TRUE(keys.count(key)) << key;
  }
  const auto& level = run.at("levels").at(0);
  EXPECT_EQ(level.at("status"), "ok");
  EXPECT_TRUE(level.at("time_us").is_null());  // never invented
  EXPECT_TRUE(level.at("claims").at(0).at("holds").is_null());
}

TEST(CommandLine, AMismatchIsExit1AndNamed) {
  const Ended outcome = chapter<Bug::off_by_one>({"--check", "--no-trace"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_CONTAINS(outcome.err, "Chapter 99: level reverse: out[0][0]: got ");
}

TEST(CommandLine, OnlyTheFirstLadderIsATable) {
  const auto tables = [](const Ended& outcome) {
    int count = 0;
    for (std::size_t at = 0; (at = outcome.out.find("check  claims", at)) != std::string::npos;
         ++at)
      ++count;
    return count;
  };
  const auto run = [](const Chapter& chapter, const Words& more = {}) {
    return run_with_json(chapter, joined(more, {"--check", "--no-trace"}));
  };
  const Chapter one_is_wrong = two_ladders<Bug::off_by_one>();
  const EndedRun usual = run(one_is_wrong);
  EXPECT_EQ(tables(usual), 1) << usual.out;
  EXPECT_EQ(usual.status, 1);  // the second is checked all the same
  EXPECT_CONTAINS(usual.out,
                  "second            4x64                   1 level   FAIL\n    reverse\n"
                  "      out[0][0]: got ");
  EXPECT_CONTAINS(usual.err, "Chapter 99: level reverse: out[0][0]: got ");
  const auto& runs = usual.json.at("runs");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs.at(1).at("levels").at(0).at("status"), "mismatch");

  const EndedRun all = run(one_is_wrong, {"--all"});
  EXPECT_EQ(tables(all), 2) << all.out;
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(all.json.at("runs").size(), 2u);
  const Ended one = run(one_is_wrong, {"--ladder", "second"});
  EXPECT_EQ(tables(one), 1);
  EXPECT_CONTAINS(one.out, "Chapter 99 · second · ");
  const Ended sizes = run(two_ladders(), {"--size", "4x64", "--size", "3x33"});
  EXPECT_EQ(tables(sizes), 2) << "the first ladder at both sizes";
  EXPECT_CONTAINS(sizes.out, "second            3x33                   1 level   ok");
  EXPECT_EQ(sizes.status, 0) << sizes.err;
}

TEST(CommandLine, NoColourWhenNotATerminal) {
  EXPECT_LACKS(chapter({"--check", "--no-trace"}).out, "\033");
}

}  // namespace
}  // namespace cookbook
