// SPDX-License-Identifier: MIT
// What of a ladder is timed and what becomes of the times, and the kernels that measure roofs. The
// sampler, Google Benchmark and chapter 0 are stand-ins: nothing here needs a GPU.
#include <gtest/gtest.h>

#include <map>

#include "common/bench/bench.hpp"
#include "common/harness/run/execute.hpp"
#include "common/harness/run/roofs.hpp"
#include "tests/given.hpp"

namespace cookbook {
namespace {

// ---- stand-ins ---------------------------------------------------------------------------------

struct Sampled {
  std::vector<std::string> names;
  BenchOptions options;
};
std::vector<Sampled> sampled;             // calls of measure()
std::map<std::string, Timing> cold, hot;  // what it finds, by contender
std::string fails;                        // the contender that does not launch
int launches = 1;                         // of each contender

struct Registered {
  std::string prefix;
  std::size_t contenders, measurements;
  double bytes, flops;
};
std::vector<Registered> registered;

Timing all(double us) { return {us, us, us, 9}; }

std::map<std::string, int> prepared;  // how often, by ladder of chapter 0

// One ladder of chapter 0. Its problem moves and computes what its first extent says. Only its
// first level is to be measured.
Ladder roof_ladder(const std::string& name, Roof roof, bool supported = true) {
  Ladder ladder;
  ladder.name = name;
  ladder.roof = roof;
  ladder.gpu_size = {1000}, ladder.check_size = {10}, ladder.trace_size = {1};
  ladder.make_problem = [](const Size& size, const Variant&) {
    Given given = given_row(DType::f32, {1}, {1}, {0});
    given.problem->moved = 8e3 * static_cast<double>(size.at(0));
    given.problem->operations = 5e6 * static_cast<double>(size.at(0));
    return given.problem;
  };
  LevelEntry level = given_row(DType::f32, {1}, {1}, {0}).level();
  level.supports = [supported](const AnyProblem&, const DeviceInfo&) {
    return supported ? Support::yes() : Support::no("not on this GPU");
  };
  level.prepare = [name](const AnyProblem&, const DevicePointers&) {
    ++prepared[name];
    return [](Stream) {};
  };
  LevelEntry other = level;
  other.prepare = [](const AnyProblem&, const DevicePointers&) -> std::function<void(Stream)> {
    throw std::logic_error("not the kernel that measures the roof");
  };
  ladder.levels = {level, other};
  return ladder;
}

}  // namespace

std::vector<Measurement> measure(const std::vector<Contender>& contenders,
                                 const BenchOptions& options, std::vector<ClockSample>* clocks) {
  sampled.push_back({{}, options});
  if (clocks) clocks->push_back({0, 1980, 2619, 40, 300});
  if (options.progress) options.progress("sampling");
  std::vector<Measurement> found;
  for (const Contender& each : contenders) {
    sampled.back().names.push_back(each.name);
    Measurement& one = found.emplace_back();
    if (each.name == fails) {
      one.error = "too many resources requested for launch";
      continue;
    }
    for (int i = 0; i < launches; ++i) each.run(Stream{});
    one.cold = cold.at(each.name), one.hot = hot.at(each.name);
    one.cold_us.assign(9, one.cold.median);
  }
  return found;
}

void register_google_benchmark(const std::string& prefix, const std::vector<Contender>& contenders,
                               const std::vector<Measurement>& measurements, double bytes,
                               double flops) {
  registered.push_back({prefix, contenders.size(), measurements.size(), bytes, flops});
}

Chapter chapter_0_entry() {
  Chapter chapter;
  chapter.ladders = {roof_ladder("copy", Roof::hbm_copy), roof_ladder("read", Roof::hbm_read),
                     roof_ladder("cache", Roof::l2), roof_ladder("fma", Roof::fp32),
                     roof_ladder("wgmma", Roof::wgmma_bf16, false)};
  return chapter;
}

namespace {

// Times with which the roofs come out round: 2,000 and 100.
void start() {
  sampled.clear(), registered.clear(), fails.clear(), launches = 1;
  cold = {{"copy", all(4)}, {"read", all(3.2)}, {"cache", all(2)}, {"fma", all(60)}};
  hot = {{"copy", all(1)}, {"read", all(1)}, {"cache", all(1)}, {"fma", all(50)}};
}

// ---- roofs -------------------------------------------------------------------------------------

TEST(MeasuredRoofs, AreThoseAskedForAndThatThisGpuHas) {
  start();
  std::vector<std::string> said;
  const Roofs roofs = measure_roofs([&](const std::string& text) { said.push_back(text); },
                                    {Roof::fp32, Roof::wgmma_bf16, Roof::hbm_copy});
  EXPECT_DOUBLE_EQ(roofs.at(Roof::hbm_copy), 2000);
  EXPECT_DOUBLE_EQ(roofs.at(Roof::fp32), 100);
  EXPECT_FALSE(roofs.contains(Roof::hbm_read) || roofs.contains(Roof::l2) ||
               roofs.contains(Roof::wgmma_bf16));
  EXPECT_EQ(said, (std::vector<std::string>{"measuring this GPU's roofs: fma",
                                            "measuring this GPU's roofs: copy"}));
  ASSERT_EQ(sampled.size(), 2u);
  EXPECT_EQ(sampled[0].names, std::vector<std::string>{"fma"});
  EXPECT_EQ(sampled[1].names, std::vector<std::string>{"copy"});
  for (const Sampled& each : sampled) {  // long enough, and two seconds in all
    EXPECT_EQ(each.options.min_rounds, 7);
    EXPECT_EQ(each.options.seconds, 0.15);
    EXPECT_TRUE(each.options.hot);
  }
  EXPECT_EQ(prepared.count("wgmma"), 0u);
}

TEST(MeasuredRoofs, ArePreparedOnceAndMeasuredEachTime) {
  start();
  measure_roofs({}, {Roof::hbm_read});
  cold["read"] = all(1.6);
  EXPECT_DOUBLE_EQ(measure_roofs({}, {Roof::hbm_read}).at(Roof::hbm_read), 5000);
  EXPECT_EQ(prepared.at("read"), 1);
  EXPECT_EQ(sampled.size(), 2u);
}

TEST(MeasuredRoofs, OneThatFailsStaysEmpty) {
  start();
  fails = "cache";
  const Roofs roofs = measure_roofs({}, {Roof::l2, Roof::hbm_copy});
  EXPECT_FALSE(roofs.contains(Roof::l2));
  EXPECT_TRUE(roofs.contains(Roof::hbm_copy));
}

// ---- a ladder ----------------------------------------------------------------------------------

// A level that writes 1, and `later` from its run number `from` on (the first is 0). One element,
// which may be wrong by 0.5.
LevelEntry level(const std::string& name, double first = 1, int from = 1 << 20, double later = 1) {
  Given given = given_row(DType::f32, {1}, {1}, {0.5});
  given.run = [spec = given.problem->specs[0], first, from, later](const DevicePointers& at,
                                                                   int before) {
    store(at.get<void>("out"), spec, 0, before < from ? first : later);
  };
  LevelEntry made = given.level();
  made.name = name;
  return made;
}

struct Timed {
  Ladder ladder;
  Libraries libraries;
  Options options;
  LadderResult result;

  explicit Timed(std::vector<LevelEntry> levels) {
    ladder.name = "given";
    ladder.make_problem = [](const Size& size, const Variant&) {
      EXPECT_EQ(size, (Size{30, 40}));
      return given_row(DType::f32, {1}, {1}, {0.5}).problem;
    };
    ladder.levels = std::move(levels);
    result.program = "chapter-7", result.size = {30, 40};
    result.bytes = 4e6, result.flops = 8e9;
    for (const LevelEntry& each : ladder.levels) {
      result.levels.emplace_back().name = each.name;
    }
  }
  void run() {
    LadderRun planned;
    planned.ladder = &ladder;
    for (std::size_t i = 0; i < ladder.levels.size(); ++i) {
      planned.levels.push_back(static_cast<int>(i));
    }
    planned.roofs = {Roof::hbm_copy};
    time_levels(planned, libraries, options, result);
  }
};

void expect_check(const CheckResult& check, Fault fault, const std::string& reason) {
  EXPECT_EQ(check.fault, fault);
  EXPECT_EQ(check.reason, reason);
}

void takes(const std::string& name, double us) { cold[name] = all(us), hot[name] = all(us / 2); }

TEST(TimeLevels, TimesWhatIsRightAndTheLaddersLibraries) {
  start();
  takes("slow", 40), takes("fast", 20), takes("library", 25);
  Timed timed({level("slow"), level("fast"), level("wrong", 2), level("hung")});
  timed.result.levels[3].check = {Fault::hang, "no end"};
  timed.libraries = {{"other", level("others")},
                     {"given", level("wrong library", 2)},
                     {"given", level("library")}};
  timed.run();
  const auto& rows = timed.result.levels;
  EXPECT_EQ(sampled.back().names, (std::vector<std::string>{"slow", "fast", "library"}));
  EXPECT_TRUE(sampled.back().options.progress);
  EXPECT_EQ(rows[0].cold->median, 40);
  EXPECT_EQ(rows[0].hot->median, 20);
  EXPECT_DOUBLE_EQ(rows[1].gbps.value(), 200);
  EXPECT_DOUBLE_EQ(rows[1].tflops.value(), 400);
  EXPECT_DOUBLE_EQ(rows[1].vs_previous->ratio, 2);
  EXPECT_DOUBLE_EQ(rows[1].vs_reference->ratio, 1.25);
  EXPECT_EQ(rows[1].reference_name, "library");
  EXPECT_DOUBLE_EQ(rows[1].roof_fraction.value(), 200 / timed.result.roofs->at(Roof::hbm_copy));
  expect_check(rows[2].check, Fault::wrong_result,
               "out[0][0]: got 2, expected 1 (error 1, allowed 0.5)");
  EXPECT_FALSE(rows[2].cold || rows[3].cold);
  EXPECT_EQ(rows[3].check.fault, Fault::hang);
  const auto& references = timed.result.references;
  ASSERT_EQ(references.size(), 2u);
  EXPECT_EQ(references[0].name, "wrong library");
  EXPECT_EQ(references[0].check.fault, Fault::wrong_result);
  EXPECT_FALSE(references[0].cold);
  EXPECT_EQ(references[1].name, "library");
  EXPECT_EQ(references[1].check.fault, Fault::none);
  EXPECT_EQ(references[1].cold->median, 25);
  ASSERT_EQ(timed.result.clocks.size(), 1u);
  EXPECT_EQ(timed.result.clocks[0].sm_mhz, 1980);
  EXPECT_TRUE(registered.empty());
}

TEST(TimeLevels, ALevelThatTurnsWrongWhileItIsTimedIsWrong) {
  start();
  for (const char* name : {"right", "turns", "differs", "may differ", "library"}) takes(name, 40);
  takes("breaks", 40);
  fails = "breaks";
  launches = 3;
  // The plan that is timed: three launches, and number 3 is checked.
  std::vector<LevelEntry> levels = {level("right", 1, 4, 2), level("may differ", 1, 3, 1.25),
                                    level("turns", 1, 3, 2), level("differs", 1, 3, 1.25),
                                    level("breaks", 1, 1, 2)};
  levels[1].same_every_run = false;
  Timed timed(std::move(levels));
  timed.libraries = {{"given", level("library", 1, 1, 2)}};
  timed.run();
  const auto& rows = timed.result.levels;
  expect_check(rows[0].check, Fault::none, "");
  EXPECT_EQ(rows[1].check.fault, Fault::none);
  expect_check(rows[2].check, Fault::wrong_result,
               "after timing: out[0][0]: got 2, expected 1 (error 1, allowed 0.5)");
  expect_check(rows[3].check, Fault::runs_differ, "after timing: the output differs from before");
  expect_check(rows[4].check, Fault::kernel_failed, "too many resources requested for launch");
  EXPECT_EQ(timed.result.references[0].check.fault, Fault::none);  // a library is not checked again
}

TEST(TimeLevels, ARoofIsMeasuredAgainBeforeALevelIsFasterThanIt) {
  start();
  takes("level", 40);
  const auto timed = [] {
    sampled.clear();
    Timed one({level("level")});
    one.run();
    return one.result;
  };
  const LadderResult below = timed();
  const double roof = below.roofs->at(Roof::hbm_copy);
  // At the roof: not measured again.
  takes("level", 1e-3 * below.bytes / roof);
  const LadderResult at = timed();
  EXPECT_EQ(sampled.size(), 1u);
  EXPECT_DOUBLE_EQ(at.levels[0].roof_fraction.value(), 1);
  // Twice as fast, and the roof is now found to be three times as high.
  takes("level", 0.5e-3 * below.bytes / roof);
  cold["copy"] = all(8e6 * 1e-3 / (3 * roof));
  const LadderResult above = timed();
  ASSERT_EQ(sampled.size(), 2u);
  EXPECT_EQ(sampled[1].names, std::vector<std::string>{"copy"});
  EXPECT_DOUBLE_EQ(above.roofs->at(Roof::hbm_copy), 3 * roof);
  EXPECT_NEAR(above.levels[0].roof_fraction.value(), 2.0 / 3, 1e-9);
  // The next ladder is judged against the higher one, and a lower one does not replace it.
  takes("level", 1e-3 * below.bytes / (4 * roof));
  cold["copy"] = all(8e6 * 1e-3 / roof);
  const LadderResult next = timed();
  EXPECT_EQ(sampled.size(), 2u);
  EXPECT_DOUBLE_EQ(next.roofs->at(Roof::hbm_copy), 3 * roof);
}

TEST(TimeLevels, GoogleBenchmarkGetsThemWhereItWasAskedFor) {
  start();
  takes("level", 40);
  Timed timed({level("level")});
  timed.options.benchmark_arguments = {"--benchmark_format=json"};
  timed.run();
  ASSERT_EQ(registered.size(), 1u);
  EXPECT_EQ(registered[0].prefix, "chapter-7/given/30x40");
  EXPECT_EQ(registered[0].contenders, 1u);
  EXPECT_EQ(registered[0].measurements, 1u);
  EXPECT_EQ(registered[0].bytes, 4e6);
  EXPECT_EQ(registered[0].flops, 8e9);
}

}  // namespace
}  // namespace cookbook
