// SPDX-License-Identifier: MIT
// From samples to rates, ratios and roofs, with numbers that can be checked by hand.
#include "common/harness/report/rates.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <iterator>
#include <optional>

namespace cookbook {
namespace {

Timing all(double us) { return {us, us, us, 9}; }

TimedContender contender(int number, std::size_t row, const char* name, double us,
                         double hot_us = 1) {
  TimedContender one;
  one.number = number, one.row = row, one.name = name;
  one.cold = all(us), one.hot = all(hot_us);
  one.cold_us.assign(9, us);
  return one;
}

TimedContender library(std::size_t row, const char* name, double us) {
  return contender(TimedContender::kLibrary, row, name, us);
}

/// One launch of bytes and flops, with a roof of device memory and one of FP32.
LadderResult ladder_of(std::size_t levels, std::size_t references, Roof roof = Roof::hbm_copy) {
  LadderResult result;
  result.bytes = 4e6, result.flops = 8e9;
  result.roof = roof;
  result.roofs = {{Roof::hbm_copy, 2000}, {Roof::fp32, 100}};
  result.levels.resize(levels);
  result.references.resize(references);
  return result;
}

LadderResult timed(std::size_t levels, std::size_t references,
                   const std::vector<TimedContender>& contenders, Roof roof = Roof::hbm_copy) {
  LadderResult result = ladder_of(levels, references, roof);
  enter_times(contenders, result);
  return result;
}

TEST(Rates, AreWorkOverTheColdMedian) {
  const LadderResult result =
      timed(1, 1, {contender(0, 0, "naive", 4, 2), library(0, "memcpy", 5)});
  EXPECT_DOUBLE_EQ(*result.levels[0].gbps, 1000);
  EXPECT_DOUBLE_EQ(*result.levels[0].tflops, 2000);
  EXPECT_DOUBLE_EQ(result.levels[0].cold->median, 4);
  EXPECT_DOUBLE_EQ(result.levels[0].hot->median, 2);
  EXPECT_DOUBLE_EQ(*result.references[0].gbps, 800);
  EXPECT_DOUBLE_EQ(*result.references[0].tflops, 1600);
  EXPECT_DOUBLE_EQ(result.references[0].hot->median, 1);
}

// As with --seconds: the optional warm time stays empty, and is null in the results file.
TEST(Rates, WithoutWarmSamplesThereIsNoWarmTime) {
  TimedContender level = contender(0, 0, "naive", 4), other = library(0, "memcpy", 5);
  level.hot = other.hot = {};
  const LadderResult result = timed(1, 1, {level, other});
  EXPECT_DOUBLE_EQ(result.levels[0].cold->median, 4);
  EXPECT_FALSE(result.levels[0].hot.has_value());
  EXPECT_FALSE(result.references[0].hot.has_value());
}

TEST(Rates, WithoutFlopsThereAreNone) {
  LadderResult result = ladder_of(1, 1);
  result.flops = 0;
  enter_times({contender(0, 0, "naive", 4), library(0, "memcpy", 5)}, result);
  EXPECT_EQ(result.levels[0].tflops, std::nullopt);
  EXPECT_EQ(result.references[0].tflops, std::nullopt);
}

TEST(Rates, TheRoofIsOfBytesOrOfFlops) {
  const auto fraction = [](Roof roof, double us) {
    return timed(1, 0, {contender(0, 0, "naive", us)}, roof).levels[0].roof_fraction;
  };
  EXPECT_DOUBLE_EQ(fraction(Roof::hbm_copy, 4).value(), 0.5);
  EXPECT_DOUBLE_EQ(fraction(Roof::fp32, 160).value(), 0.5);
  EXPECT_EQ(fraction(Roof::wgmma_bf16, 4), std::nullopt);
}

TEST(Rates, OperationsOfItsOwnKind) {
  LadderResult result = ladder_of(1, 1, Roof::own);
  result.operation = "key", result.own_gops = 4000;
  enter_times({contender(0, 0, "naive", 4), library(0, "lib", 8)}, result);
  EXPECT_EQ(result.speed_unit(), "Gkey/s");
  EXPECT_DOUBLE_EQ(*result.speed(result.levels[0].gbps, result.levels[0].tflops), 2e6);
  EXPECT_DOUBLE_EQ(*result.levels[0].roof_fraction, 500);
  const auto run = to_json(result);
  EXPECT_EQ(run.at("roof"), "stated roof");
  EXPECT_EQ(run.at("problem").at("operation"), "key");
  EXPECT_EQ(run.at("own_gops"), 4000);
  // Not stated, or nothing counted: no fraction, and no other roof in its place.
  LadderResult unknown = ladder_of(1, 0, Roof::own), none = ladder_of(1, 0, Roof::own);
  none.own_gops = 4000, none.flops = 0;
  for (LadderResult* one : {&unknown, &none}) {
    enter_times({contender(0, 0, "naive", 4)}, *one);
    EXPECT_EQ(one->levels[0].roof_fraction, std::nullopt);
  }
  EXPECT_EQ(ladder_of(1, 0).speed_unit(), "GB/s");
  EXPECT_EQ(ladder_of(1, 0, Roof::fp32).speed_unit(), "TFLOP/s");
  EXPECT_EQ(to_json(ladder_of(1, 0)).contains("own_gops"), false);
}

// What is measured has its own place in the results file, for a level and for a library.
TEST(Rates, TheResultsFileKeepsEachNumberApart) {
  LadderResult result = ladder_of(1, 1);
  result.clocks = {{1.5, 1980, 2619, 41, 612.5}};
  LevelResult& level = result.levels[0];
  level.name = "tiled", level.check.max_error = 0.25, level.check.error_bound = 0.5;
  level.cold = Timing{4, 3, 5, 90}, level.hot = Timing{2, 1, 3, 80};
  level.gbps = 10, level.tflops = 20, level.roof_fraction = 0.75;
  level.vs_previous = Ratio{1.5, 1.25, 1.75}, level.vs_reference = Ratio{0.5, 0.25, 0.625};
  level.reference_name = "cuBLAS";
  ReferenceResult& library = result.references[0];
  library.name = "cuBLAS", library.check.reason = "slow";
  library.cold = Timing{7, 6, 8, 70}, library.hot = Timing{5, 4, 6, 60};
  library.gbps = 30, library.tflops = 40;
  const auto run = to_json(result);
  const auto parsed = [](const char* text) { return nlohmann::ordered_json::parse(text); };
  EXPECT_EQ(run.at("problem").at("bytes"), 4e6);
  EXPECT_EQ(run.at("problem").at("flops"), 8e9);
  EXPECT_EQ(run.at("clocks"), parsed(R"([{"seconds": 1.5, "sm_mhz": 1980, "memory_mhz": 2619,
                                          "celsius": 41, "watts": 612.5}])"));
  EXPECT_EQ(run.at("levels").at(0), parsed(R"({
    "name": "tiled", "changed": "", "expect": "", "identity": {"code": null, "tokens": null}, "status": "ok",
    "fault": "none", "reason": null, "max_error": 0.25, "error_bound": 0.5,
    "time_us": {"median": 4.0, "q1": 3.0, "q3": 5.0, "n": 90},
    "time_hot_us": {"median": 2.0, "q1": 1.0, "q3": 3.0, "n": 80},
    "gbps": 10.0, "tflops": 20.0, "roof_fraction": 0.75,
    "vs_previous": {"ratio": 1.5, "low": 1.25, "high": 1.75, "verdict": "faster"},
    "vs_reference": {"ratio": 0.5, "low": 0.25, "high": 0.625, "name": "cuBLAS"},
    "counters": null, "claims": [], "findings": [], "faults": []})"));
  EXPECT_EQ(run.at("references"), parsed(R"([{
    "name": "cuBLAS", "status": "ok", "fault": "none", "reason": "slow",
    "time_us": {"median": 7.0, "q1": 6.0, "q3": 8.0, "n": 70},
    "time_hot_us": {"median": 5.0, "q1": 4.0, "q3": 6.0, "n": 60},
    "gbps": 30.0, "tflops": 40.0}])"));
}

TEST(Rates, TheVerdictNeedsTwoPerCentAndTheWholeInterval) {
  const auto verdict = [](double ratio, double low, double high) {
    LadderResult result = ladder_of(1, 0);
    result.levels[0].vs_previous = Ratio{ratio, low, high};
    return to_json(result).at("levels").at(0).at("vs_previous").at("verdict").get<std::string>();
  };
  EXPECT_EQ(verdict(1.02, 1.001, 1.1), "faster");
  EXPECT_EQ(verdict(1.019, 1.001, 1.1), "same");
  EXPECT_EQ(verdict(1.5, 1, 2), "same");
  EXPECT_EQ(verdict(1 / 1.02, 0.9, 0.999), "slower");
  EXPECT_EQ(verdict(0.981, 0.9, 0.999), "same");
  EXPECT_EQ(verdict(0.5, 0.25, 1), "same");
}

TEST(Rates, ALevelIsOverItsRoofByMoreThanThreePerCent) {
  LevelResult level;
  EXPECT_FALSE(over_its_roof(level));  // no roof is known
  level.roof_fraction = 1.03;
  EXPECT_FALSE(over_its_roof(level));
  level.roof_fraction = 1.031;
  EXPECT_TRUE(over_its_roof(level));
}

TEST(Rates, ARoofThatIsMeasuredAgainOnlyRises) {
  Roofs roofs = {{Roof::fp32, 60}, {Roof::l2, 8000}, {Roof::wgmma_int8, 1700}};
  raise_roofs({{Roof::fp32, 65}, {Roof::l2, 7000}, {Roof::fp64, 33}}, roofs);
  EXPECT_EQ(
      roofs,
      (Roofs{{Roof::fp32, 65}, {Roof::l2, 8000}, {Roof::fp64, 33}, {Roof::wgmma_int8, 1700}}));
}

TEST(Rates, AFasterLevelHasARatioAboveOne) {
  const LadderResult result =
      timed(2, 1, {contender(0, 0, "slow", 6), contender(1, 1, "fast", 2), library(0, "lib", 3)});
  EXPECT_EQ(result.levels[0].vs_previous, std::nullopt);
  EXPECT_DOUBLE_EQ(result.levels[1].vs_previous->ratio, 3);
  EXPECT_DOUBLE_EQ(result.levels[0].vs_reference->ratio, 0.5);
  EXPECT_DOUBLE_EQ(result.levels[1].vs_reference->ratio, 1.5);
  EXPECT_EQ(result.levels[1].reference_name, "lib");
}

TEST(Rates, ThePreviousLevelIsTheOneBelowInTheLadder) {
  // Levels 0, 2 and 3 were selected; 3 stands above 2, and 2 does not stand above 0.
  const LadderResult result = timed(
      3, 0, {contender(0, 0, "zero", 8), contender(2, 1, "two", 4), contender(3, 2, "three", 2)});
  EXPECT_EQ(result.levels[1].vs_previous, std::nullopt);
  EXPECT_DOUBLE_EQ(result.levels[2].vs_previous->ratio, 2);
  EXPECT_EQ(result.levels[2].vs_reference, std::nullopt);
}

TEST(Rates, ALevelWithAnErrorIsWrongAndNobodysPrevious) {
  auto broken = contender(1, 1, "broken", 1), absent = library(0, "absent", 1);
  broken.error = "launch failure", absent.error = "not installed";
  const LadderResult result = timed(3, 2,
                                    {contender(0, 0, "zero", 8), broken, contender(2, 2, "two", 4),
                                     absent, library(1, "second", 2)});
  EXPECT_EQ(result.levels[1].check.status, CheckResult::Status::mismatch);
  EXPECT_EQ(result.levels[1].check.reason, "launch failure");
  EXPECT_EQ(result.levels[1].cold, std::nullopt);
  EXPECT_EQ(result.levels[2].vs_previous, std::nullopt);
  EXPECT_EQ(result.references[0].check.fault, Fault::unsupported);
  EXPECT_EQ(result.references[0].check.reason, "not installed");
  EXPECT_EQ(result.references[0].cold, std::nullopt);
  EXPECT_EQ(result.levels[2].reference_name, "second");
  EXPECT_DOUBLE_EQ(result.levels[2].vs_reference->ratio, 0.5);
}

TEST(Rates, TheFirstLibraryIsTheReference) {
  const LadderResult result =
      timed(1, 2, {contender(0, 0, "zero", 8), library(0, "first", 4), library(1, "second", 2)});
  EXPECT_EQ(result.levels[0].reference_name, "first");
  EXPECT_DOUBLE_EQ(result.levels[0].vs_reference->ratio, 0.5);
}

TEST(Rates, EachRoofIsItsOwnAndOnlyDeviceMemorysAreCold) {
  const double bytes = 4e6, flops = 8e9;
  const struct {
    Roof roof;
    double expected;
  } roofs[] = {{Roof::hbm_copy, 1000},   {Roof::hbm_read, 1000},   {Roof::l2, 2000},
               {Roof::shared, 2000},     {Roof::fp32, 4000},       {Roof::mma_bf16, 4000},
               {Roof::wgmma_bf16, 4000}, {Roof::fp64, 4000},       {Roof::mma_tf32, 4000},
               {Roof::mma_int8, 4000},   {Roof::wgmma_tf32, 4000}, {Roof::wgmma_fp8, 4000},
               {Roof::wgmma_int8, 4000}};
  EXPECT_EQ(std::size(roofs), measured_roofs().size());
  for (const auto& one : roofs) {
    Roofs measured;
    enter_roof(one.roof, bytes, flops, all(4), all(2), measured);
    for (const auto& other : roofs) {
      const std::optional<double> value = roof_value(measured, other.roof);
      if (other.roof == one.roof) {
        EXPECT_DOUBLE_EQ(value.value(), one.expected) << static_cast<int>(one.roof);
      } else {
        EXPECT_EQ(value, std::nullopt) << static_cast<int>(one.roof);
      }
    }
  }
}

TEST(Rates, ALadderNeedsTheRoofsOfMemoryAndOfItsElementType) {
  using Roofs = std::vector<Roof>;
  const Roofs memory = {Roof::hbm_copy, Roof::hbm_read, Roof::l2, Roof::shared};
  const auto memory_and = [&](const Roofs& more) {
    Roofs both = memory;
    both.insert(both.end(), more.begin(), more.end());
    return both;
  };
  EXPECT_EQ(needed_roofs({}), memory);
  EXPECT_EQ(needed_roofs({Roof::hbm_copy, Roof::shared}), memory);
  EXPECT_EQ(needed_roofs({Roof::own}), memory);
  EXPECT_EQ(needed_roofs({Roof::fp32}), memory_and({Roof::fp32}));
  EXPECT_EQ(needed_roofs({Roof::fp64}), memory_and({Roof::fp64}));
  EXPECT_EQ(needed_roofs({Roof::wgmma_fp8}), memory_and({Roof::wgmma_fp8}));
  EXPECT_EQ(needed_roofs({Roof::wgmma_bf16}), memory_and({Roof::mma_bf16, Roof::wgmma_bf16}));
  EXPECT_EQ(needed_roofs({Roof::mma_int8}), memory_and({Roof::mma_int8, Roof::wgmma_int8}));
  // In the order of measured_roofs(), each once.
  EXPECT_EQ(needed_roofs({Roof::mma_tf32, Roof::hbm_read, Roof::mma_bf16, Roof::wgmma_bf16}),
            memory_and({Roof::mma_bf16, Roof::wgmma_bf16, Roof::mma_tf32, Roof::wgmma_tf32}));
  EXPECT_EQ(needed_roofs(all_roofs()), all_roofs());
  EXPECT_EQ(all_roofs().size(), measured_roofs().size());
}

}  // namespace
}  // namespace cookbook
