// SPDX-License-Identifier: MIT
// The autotuner: every pitfall is planted and must be caught. Searchers, cache and shards run on
// invented spaces.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/11_autotuning/attention_problem.hpp"
#include "chapters/11_autotuning/level_1_best_fixed.cuh"
#include "chapters/11_autotuning/spaces.hpp"
#include "chapters/11_autotuning/tuner/cli.hpp"
#include "chapters/11_autotuning/tuner/levels.hpp"
#include "common/harness/contract/tokens.hpp"
#include "common/harness/report/statistics.hpp"
#include "common/harness/run/process.hpp"
#include "tests/error_of.hpp"
#include "tests/folder.hpp"
#include "tests/planted/reverse.hpp"
#include "tests/ended.hpp"
#include "tests/text.hpp"

// A disk that takes a few bytes at a time, and is full after some.
static std::size_t bytes_per_write = SIZE_MAX, bytes_until_full = SIZE_MAX;
extern "C" ssize_t write(int file, const void* data, size_t bytes) {
  if (bytes_until_full == 0) return errno = ENOSPC, -1;
  const ssize_t written =
      syscall(SYS_write, file, data, std::min({bytes, bytes_per_write, bytes_until_full}));
  if (written > 0) bytes_until_full -= static_cast<std::size_t>(written);
  return written;
}

namespace cookbook {
Chapter chapter_11_entry();

namespace tune {
namespace {

using planted::Bug;
namespace fs = std::filesystem;

std::string contents(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

using Us = std::vector<double>;
using Indices = std::vector<std::size_t>;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// A configuration of `level`, or one that was never compiled: why.
Candidate configuration(Parameters parameters, const LevelEntry& level, std::string illegal = "") {
  return {std::move(parameters), std::move(illegal), level, level};
}

// --- a space made up -----------------------------------------------------------------------------

// Configurations (tile, stages) of a kernel that does not exist; runs anything.
Space synthetic_space(int tiles = 6, int stages = 4) {
  Space space;
  space.kernel = "synthetic";
  space.source = __FILE__;
  space.problem = planted::reverse_ladder<Bug::none>();
  space.size_of = [](const AnyProblem& problem) {
    const auto& p = *static_cast<const planted::Problem*>(problem.get());
    return Size{p.rows, p.cols};
  };
  space.training = {{1, 16}, {4, 64}, {16, 128}, {2, 200}};
  space.held_out = {{8, 100}};
  for (int t = 0; t < tiles; ++t) {
    for (int s = 0; s < stages; ++s) {
      space.add(configuration({{"tile", 16 << t}, {"stages", 2 + s}}, space.problem.levels.at(0)));
    }
  }
  return space;
}

// The larger the problem, the larger the best tile; deep pipelines help a little.
double synthetic_us(const Parameters& p, const Size& size) {
  const double best = std::log2(16 + static_cast<double>(size[0] * size[1]) / 32);
  const double off = std::log2(static_cast<double>(value_of(p, "tile"))) - best;
  return 20 + 4 * off * off + 6.0 / static_cast<double>(value_of(p, "stages"));
}

Recording synthetic_recording(const Space& space, double noise = 0.003, unsigned seed = 3) {
  Recording recording;
  recording.kernel = space.kernel, recording.date = "none", recording.commit = "none";
  recording.device = device_info();
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(1.0, noise);
  for (const Candidate& each : space.candidates())
    recording.parameters[each.id()] = each.parameters;
  auto add = [&](const Size& size, bool held_out) {
    RecordedProblem& problem = recording.problems.emplace_back();
    problem.size = size, problem.held_out = held_out;
    for (const Candidate& each : space.candidates()) {
      std::generate_n(std::back_inserter(problem.configurations[each.id()].us), 30,
                      [&] { return synthetic_us(each.parameters, size) * normal(random); });
    }
  };
  for (const Size& size : space.training) add(size, false);
  for (const Size& size : space.held_out) add(size, true);
  return recording;
}

std::optional<int> run_command(const Space& space, std::vector<std::string> words) {
  words.insert(words.begin(), "chapter-11");
  return called_with(words, [&](int argc, char** argv) { return command({&space}, argc, argv); });
}

Survivors everyone(const Space& space) {
  Survivors all{std::vector<std::size_t>(space.candidates().size()), "all", std::nullopt};
  std::iota(all.indices.begin(), all.indices.end(), 0);
  return all;
}

/// A recording of one shape in which configuration c always takes us[c].
RecordedProblem constant_times(const Space& space, const std::vector<double>& us, int rounds,
                               const Size& size = {4, 64}) {
  RecordedProblem problem;
  problem.size = size;
  for (std::size_t c = 0; c < us.size(); ++c) {
    problem.configurations[space[c].id()].us.assign(static_cast<std::size_t>(rounds), us[c]);
  }
  return problem;
}

/// A search among all configurations of a space.
Report search(const Space& space, const Size& size, Timer& timer, Verifier* verifier = nullptr,
              const TuneOptions& options = {}) {
  const auto problem = space.problem.make_problem(size, {});
  return tune(space, size, *problem, device_info(), everyone(space), timer, verifier, options);
}

/// The same with times that were recorded.
Report search(const Space& space, const RecordedProblem& times, Verifier* verifier = nullptr) {
  ReplayTimer timer(times, space.ids());
  return search(space, times.size, timer, verifier);
}

Report replay(const Space& space, const Recording& recording, const Size& size,
              const TuneOptions& options = {}) {
  ReplayTimer timer(*recording.find(size), space.ids());
  const auto problem = space.problem.make_problem(size, {});
  Survivors all = everyone(space);
  all.fixed = best_fixed(recorded_times(space, recording));
  return tune(space, size, *problem, recording.device, all, timer, nullptr, options);
}

// What a search finds when configuration c always takes us[c].
Report tuned_on(const Space& space, const std::vector<double>& us) {
  return search(space, constant_times(space, us, 20));
}

double true_us(const Space& space, const std::string& id, const Size& size) {
  return synthetic_us(space[*space.find(id)].parameters, size);
}

double least_us(const Space& space, const Size& size) {
  double least = kNever;
  for (const Candidate& each : space.candidates()) {
    least = std::min(least, synthetic_us(each.parameters, size));
  }
  return least;
}

DevicePointers pointers_at(std::uintptr_t in, std::uintptr_t out) {
  DevicePointers at;
  at.by_name = {{"in", reinterpret_cast<void*>(in)}, {"out", reinterpret_cast<void*>(out)}};
  return at;
}

// `decide` on a simulated GPU, search included, for a problem that is worth one.
struct MadeUpGpu {
  explicit MadeUpGpu(const Space& of) : space(of) {
    machine.device = device_info();
    machine.device.name = "a GPU", machine.device.is_simt = false;
    machine.why_not_time = [this] { return profiler; };
    machine.search = [this](const Space&, const Size& size, const Variant&, const TuneOptions&,
                            const Cache& cache) {
      ++searches;
      Us us(space.candidates().size(), 100);
      us.at(2) = 50;
      Report report = tuned_on(space, us);
      report.entry.key = key(size, searched);
      cache.add(report.entry);
      return report;
    };
  }
  Key key(const Size& size, const DevicePointers& at) const {
    return make_key(space, *space.problem.make_problem(size, {}), at, machine.device);
  }
  Decision decided(const Cache& cache, const Size& size = kSize) const {
    return decide(space, *space.problem.make_problem(size, {}), pointers, cache, machine);
  }
  /// An entry of the problem in which `winner` is twice as fast as the first configuration.
  Entry entry_won_by(const std::string& winner) const {
    Entry entry;
    entry.key = key(kSize, pointers);
    entry.default_id = space[0].id();
    entry.measured[entry.default_id] = {100, 1, 1, 1, 25, ""};
    entry.measured[winner] = {50, 2, 1.9, 2.1, 25, ""};
    return entry;
  }
  static inline const Size kSize = {4096, 200};
  const Space& space;
  Machine machine;
  DevicePointers pointers = pointers_at(0, 0), searched = pointers;  // the caller's, the search's
  std::string profiler;
  int searches = 0;
};

// A folder, four configurations, and a GPU with times that are made up.
class Tuner : public testing::Test {
 protected:
  Tuner() { autotune(nullptr); }
  ~Tuner() override { autotune(nullptr); }
  /// Sets COOKBOOK_AUTOTUNE for the rest of the test; null: to nothing.
  static void autotune(const char* mode) {
    mode ? setenv("COOKBOOK_AUTOTUNE", mode, 1) : unsetenv("COOKBOOK_AUTOTUNE");
  }
  std::string printed(const Report& report) const {
    return stdout_of([&] { print(report, space); });
  }

  const Folder folder;
  Space space = synthetic_space(4, 1);
  MadeUpGpu gpu{space};
};
using Recordings = Tuner;
using Committed = Tuner;
using TuneCache = Tuner;
using Shards = Tuner;
using CommandLine = Tuner;

// --- spaces --------------------------------------------------------------------------------------

// Too large for a block: its kernel cannot be compiled, and must not be.
template <int kKilobytes>
struct Hungry {
  static Parameters parameters() { return {{"kilobytes", kKilobytes}}; }
  static constexpr bool kLegal = kKilobytes * 1024 <= kSharedMemoryBytes;
  static std::string why_illegal() { return too_much_shared_memory(kKilobytes * 1024); }
};
template <class C>
struct HungryLevel : planted::Reverse<Bug::none> {
  static_assert(C::kLegal, "an illegal configuration was instantiated");
};

void expect_fate(const Fate& fate, Stage stage, const std::string& reason) {
  EXPECT_EQ(fate.stage, stage) << reason;
  EXPECT_EQ(fate.reason, reason);
}

TEST(Space, AnIllegalConfigurationIsListedWithItsReasonAndNeverCompiled) {
  Space space = synthetic_space(1, 1);
  space.add(candidate<Hungry<100>, HungryLevel>());
  space.add(candidate<Hungry<240>, HungryLevel>());
  const auto problem = space.problem.make_problem({4, 64}, {});
  const auto fates = legality(space, *problem, device_info());
  ASSERT_EQ(fates.size(), 3u);
  EXPECT_EQ(fates[1].stage, Stage::timed);
  expect_fate(fates[2], Stage::illegal, "shared memory 245,760 > 232,448 bytes");
}

TEST(Space, ACompileBlowUpIsRefused) {
  Space space = synthetic_space(6, 5);  // 30: exactly the budget
  static_assert(within_compile_budget(30) && !within_compile_budget(31));
  const std::string said = error_of<SpaceError>([&] {
    space.add(configuration({{"tile", 1}}, {}));
  });
  EXPECT_CONTAINS(said, "more than 30");
  Space twice = synthetic_space(1, 1);
  EXPECT_THROW(twice.add(twice[0]), SpaceError);
}

TEST(Space, NamesAndNumbersByHand) {
  EXPECT_EQ(id_of({}), "");
  EXPECT_EQ(id_of({{"a", 1}, {"b", -2}, {"c", 30}}), "a=1 b=-2 c=30");
  EXPECT_EQ(value_of({{"a", 1}, {"b", -2}}, "b"), -2);
  EXPECT_EQ(value_of({{"a", 1}, {"b", -2}}, "c"), 0);
  EXPECT_EQ(value_of({{"a", 1}, {"b", -2}}, "c", 7), 7);
  for (const std::string text : {"-123,456", "-1,000", "-999", "-100", "0", "999", "1,000",
                                 "12,345", "123,456", "1,048,576", "12,345,678", "4,294,967,296"}) {
    std::string digits = text;
    std::erase(digits, ',');
    EXPECT_EQ(with_commas(std::stoll(digits)), text);
  }
  EXPECT_EQ(too_much_shared_memory(1234, 1000), "shared memory 1,234 > 1,000 bytes");
  EXPECT_EQ(too_much_shared_memory(245760), "shared memory 245,760 > 232,448 bytes");
  const std::map<Stage, std::string> stages = {
      {Stage::illegal, "illegal"},   {Stage::unsupported, "unsupported"},
      {Stage::pruned, "pruned"},     {Stage::other_shard, "other shard"},
      {Stage::failed, "failed"},     {Stage::timed, "timed"},
      {Stage::finalist, "finalist"}, {static_cast<Stage>(99), "?"}};
  for (const auto& [stage, name] : stages) EXPECT_EQ(stage_name(stage), name);
}

TEST(Space, IsSearchedByNameAndKnownByItsHash) {
  Space space;
  space.add(configuration({{"tile", 16}}, {}));
  space.add(configuration({{"tile", 32}}, {}, "too large"));
  EXPECT_EQ(space.find("tile=16"), 0u);
  EXPECT_EQ(space.find("tile=32"), 1u);
  EXPECT_EQ(space.find("tile=3"), std::nullopt);
  EXPECT_EQ(space.ids(), (std::vector<std::string>{"tile=16", "tile=32"}));
  EXPECT_EQ(space[1].illegal, "too large");
  EXPECT_THROW(space[2], std::out_of_range);
  // FNV-1a, of 64 bits, of "tile=16|" and "tile=32|too large", a line each.
  EXPECT_EQ(space.hash(), "22d725d917f4d9d6");
  // What it has and why it is illegal, and nothing else.
  EXPECT_EQ(synthetic_space(2, 2).hash(), synthetic_space(2, 2).hash());
  EXPECT_NE(synthetic_space(2, 2).hash(), synthetic_space(2, 3).hash());
  Space legal;
  legal.add(configuration({{"tile", 16}}, {}));
  legal.add(configuration({{"tile", 32}}, {}));
  EXPECT_NE(legal.hash(), space.hash());
}

TEST(Space, WhatALevelDoesNotTakeIsNotLegalThere) {
  const Space space = synthetic_space(3, 1);
  Candidate four_rows = space[1];
  four_rows.level.supports = [](const AnyProblem& problem, const DeviceInfo&) {
    const auto& p = *static_cast<const planted::Problem*>(problem.get());
    return p.rows <= 4 ? Support::yes() : Support::no("has more than four rows");
  };
  Space few;
  few.problem = space.problem;
  for (const Candidate& each : {space[0], four_rows, space[2]}) few.add(each);
  EXPECT_EQ(legal(few, *few.problem.make_problem({4, 64}, {}), device_info()), (Indices{0, 1, 2}));
  const auto large = few.problem.make_problem({5, 64}, {});
  EXPECT_EQ(legal(few, *large, device_info()), (Indices{0, 2}));
  const auto fates = legality(few, *large, device_info());
  ASSERT_EQ(fates.size(), 3u);
  EXPECT_EQ(fates[1].candidate, 1u);
  expect_fate(fates[1], Stage::unsupported, "has more than four rows");
  expect_fate(fates[2], Stage::timed, "");
  // Without a model the order of the space decides among those that can run; a model decides
  // itself. What cannot run takes for ever.
  few.training = {{4, 64}, {5, 64}};
  TimeMatrix times = predicted_times(few, device_info());
  EXPECT_EQ(times.sizes, few.training);
  ASSERT_EQ(times.us.size(), 3u);
  EXPECT_EQ(best_fixed(times), 0u);
  EXPECT_LT(times.us[0][0], times.us[1][0]);
  EXPECT_LT(times.us[1][0], times.us[2][0]);
  EXPECT_LT(times.us[0][1], times.us[2][1]);
  EXPECT_TRUE(std::isinf(times.us[1][1]));
  few.model = [](const Parameters& p, const Size& size, const DeviceInfo&) {
    return static_cast<double>(value_of(p, "tile") * size[0]);
  };
  times = predicted_times(few, device_info());
  EXPECT_EQ(times.us[0], (Us{64, 80}));
  EXPECT_EQ(times.us[1][0], 128);
  EXPECT_TRUE(std::isinf(times.us[1][1]));
  EXPECT_EQ(times.us[2], (Us{256, 320}));
}

TEST(Space, AnEmptyOneSaysWhy) {
  Space space = synthetic_space(0, 0);
  space.add(candidate<Hungry<240>, HungryLevel>());
  space.add(candidate<Hungry<999>, HungryLevel>());
  const auto problem = space.problem.make_problem({4, 64}, {});
  EXPECT_TRUE(legal(space, *problem, device_info()).empty());
  const LevelEntry level = level_over(space, {"t", "", "", ""}, nullptr);
  const Support support = level.supports(*problem, device_info());
  EXPECT_FALSE(support.ok);
  EXPECT_EQ(support.reason, "shared memory 245,760 > 232,448 bytes");
  const std::string said = error_of<std::invalid_argument>([&] { decide(space, *problem, {}); });
  EXPECT_CONTAINS(said, "1,022,976 > 232,448");
  EXPECT_CONTAINS(search(space, constant_times(space, {}, 0)).problem, "no configuration");
}

DeviceInfo hopper() {
  DeviceInfo device = device_info();
  device.cc_major = 9, device.cc_minor = 0, device.sm_count = 132, device.l2_bytes = 50 << 20;
  device.smem_per_block_bytes = kSharedMemoryBytes;
  return device;
}

TEST(Space, TheChaptersSpacesKeepTheirBudgetAndTheirDefault) {
  const DeviceInfo device = hopper();
  for (const Space* space : autotuning::all_spaces()) {
    EXPECT_LE(space->candidates().size(), kMostConfigurations) << space->kernel;
    const Survivors kept = survivors(*space, device);
    EXPECT_LE(kept.indices.size(), kMostSurvivors) << space->kernel;
    EXPECT_GE(kept.indices.size(), 2u) << space->kernel;
    const auto problem = space->problem.make_problem(space->problem.gpu_size, {});
    EXPECT_EQ(kept.indices.front(), legal(*space, *problem, device).front()) << space->kernel;
    const auto fates = legality(*space, *problem, device);
    EXPECT_GT(std::ranges::count(fates, Stage::illegal, &Fate::stage), 0)
        << space->kernel << " shows no rejection";
  }
}

TEST(Space, EveryConfigurationOfTheChapterIsRight) {
  for (const Space* space : autotuning::all_spaces()) {
    for (const bool split : {false, true}) {
      if (split && !space->search_problem) continue;
      const Ladder& ladder = split ? space->searched() : space->problem;
      for (const Size& size :
           {ladder.check_size, ladder.test_sizes.at(3), ladder.test_sizes.at(5)}) {
        Instance instance(ladder, size, InputKind::normal, 2);
        for (const Candidate& each : space->candidates()) {
          if (!each.illegal.empty()) continue;
          const CheckResult check =
              check_level(split ? each.search : each.level, instance, instance.drawn(1));
          EXPECT_NE(check.status, CheckResult::Status::mismatch)
              << space->kernel << " " << each.id() << " at " << shape_bucket(size) << ": "
              << check.reason;
        }
      }
    }
  }
}

// Two kernels in one space, and a rule for a default.
TEST(Space, AttentionKeepsBothKernelsAndTwoValuesOfEveryDimension) {
  const Space& space = autotuning::attention_space();
  const DeviceInfo device = hopper();
  const auto problem = space.problem.make_problem(space.problem.gpu_size, {});
  const auto able = legal(space, *problem, device);
  for (const Parameter& parameter : space[0].parameters) {
    std::set<std::int64_t> values;
    for (std::size_t c : able) values.insert(value_of(space[c].parameters, parameter.name));
    EXPECT_GE(values.size(), 2u) << parameter.name;
  }
  // The default is chapter 10's: 176 keys, or 128 under a mask. It claims the bytes of these tiles.
  EXPECT_EQ(space[able.front()].id(), "queries=128 keys=0 stages=2 cluster=1 group=0");
  for (const bool causal : {false, true}) {
    const Size size = {1, 2, 2, 700, 700, 128, causal ? 1 : 2};
    const auto chapter_10 = attention::tuned::Problem::make(size, {});
    const auto [block_m, block_n] = causal ? std::pair{128, 128} : std::pair{128, 176};
    const auto claims = space[0].level.claims(*space.problem.make_problem(size, {}));
    ASSERT_EQ(claims.size(), 3u);
    EXPECT_EQ(claims[1].text,
              tma_loads("k").bytes(chapter_10.key_tile_bytes(block_m, block_n)).text);
  }
  // At the traced size all of them promise the same: levels state the default's claims, whichever
  // configuration they launch.
  const auto traced = space.problem.make_problem(space.problem.trace_size, {});
  for (std::size_t c : able) {
    const Claims mine = space[c].level.claims(*traced), its = space[0].level.claims(*traced);
    ASSERT_EQ(mine.size(), its.size());
    for (std::size_t i = 0; i < its.size(); ++i) EXPECT_EQ(mine[i].text, its[i].text);
  }
  // It gives the reason for what it does not support.
  const auto narrow = space.problem.make_problem({1, 1, 1, 64, 64, 64, 2}, {});
  EXPECT_TRUE(legal(space, *narrow, device).empty());
  EXPECT_EQ(space[0].level.supports(*narrow, device).reason,
            "tuned for bf16 and head dimension 128");
  EXPECT_THROW(space.problem.make_problem({1, 1, 1, 64, 64, 128}, {}), BadSize);
  EXPECT_THROW(space.problem.make_problem({1, 1, 1, 64, 64, 128, 0}, {}), BadSize);
  // The table of unsupported configurations in chapter 11's notes.md is that of this space.
  const std::string notes = contents(source_path("chapters/11_autotuning/notes.md"));
  for (const Candidate& each : space.candidates()) {
    if (each.illegal.empty()) continue;
    std::string row = "|";
    for (const char* name : {"queries", "keys", "stages", "cluster"}) {
      row += " " + std::to_string(value_of(each.parameters, name)) + " |";
    }
    EXPECT_CONTAINS(notes, row + " " + each.illegal + " |");
  }
}

// --- verification --------------------------------------------------------------------------------

/// Configurations bug=0, bug=1 ... of these kernels.
template <Bug... kBugs>
Space planted_space() {
  Space space = synthetic_space(0, 0);
  int bug = 0;
  for (const LevelEntry& level : {make_level<planted::Reverse<kBugs>>()...}) {
    space.add(configuration({{"bug", bug++}}, level));
  }
  return space;
}

// Configurations that are wrong or do not launch, and would be the fastest.
TEST_F(Tuner, AFastConfigurationThatIsWrongIsListedAndNotChosen) {
  space = planted_space<Bug::none, Bug::unwritten_tail, Bug::too_many_threads, Bug::nan_produced>();
  const RecordedProblem fast = constant_times(space, {10, 9, 8, 7}, 10, {3, 50});
  Instance instance(space.problem, fast.size, InputKind::normal, 1);
  DeviceVerifier verifier(space, instance, fast.size);
  const Report report = search(space, fast, &verifier);
  EXPECT_EQ(report.entry.winner(), "bug=0");
  for (int bug : {1, 2, 3}) {
    EXPECT_EQ(report.fates[bug].stage, Stage::failed) << bug;
    EXPECT_FALSE(report.fates[bug].reason.empty());
  }
  EXPECT_CONTAINS(report.fates[1].reason, "never written");
  // Without the verifier the tuner would have chosen it.
  EXPECT_EQ(search(space, fast).entry.winner(), "bug=3");
}

// A tolerance for fp32 on an output in bf16: right kernels "fail".
using RmsProblem = softmax::RmsProblem<bf16>;
struct TightProblem : RmsProblem {
  static TightProblem make(const Size& size, const Variant& variant) {
    return {RmsProblem::make(size, variant)};
  }
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    RmsProblem::reference_row(tensors, output, row, value, bound);
    for (std::int64_t c = 0; c < shape.cols; ++c) bound[c] = 1e-6 * std::fabs(value[c]);
  }
};

TEST_F(Tuner, AToleranceTooTightForTheTypeIsNamedAsTheCause) {
  space = synthetic_space(0, 0);
  space.kernel = "tight";
  space.problem = ladder_over<TightProblem>("tight", "", {"rows", "cols"});
  space.problem.check_size = {4, 64};
  const Space& right = autotuning::rmsnorm_space();
  for (const char* id : {"threads=128 blocks_per_sm=8", "threads=64 blocks_per_sm=16"}) {
    space.add(right[*right.find(id)]);
  }
  Instance instance(space.problem, {4, 64}, InputKind::normal, 1);
  DeviceVerifier verifier(space, instance, {4, 64});
  const Report report = search(space, constant_times(space, {}, 0), &verifier);
  EXPECT_CONTAINS(report.problem, "too tight for the type");
  const Instance fine(right.problem, {4, 64}, InputKind::normal, 1);
  EXPECT_EQ(tolerance_too_tight(fine.problem(), fine.tensors()), "");
}

// A large problem is checked small, and its winner once more at full size.
TEST_F(Tuner, AWinnerThatIsWrongOnlyAtFullSizeIsStruckOut) {
  EXPECT_EQ(small_size({4095, 8192, 640}), (Size{512 + 127, 512, 640}));
  space = planted_space<Bug::none, Bug::wrong_at_one_size>();
  struct AtFullSizeOnly : DeviceVerifier {
    using DeviceVerifier::DeviceVerifier;
    std::string check(std::size_t) override { return ""; }
  };
  const RecordedProblem times = constant_times(space, {10, 5}, 10, {3, 33});
  Instance instance(space.problem, times.size, InputKind::normal, 1);
  AtFullSizeOnly verifier(space, instance, times.size, {}, 0);
  const Report report = search(space, times, &verifier);
  EXPECT_EQ(report.entry.winner(), "bug=0");
  EXPECT_EQ(report.fates[1].stage, Stage::failed);
  const Measured& wrong = report.entry.measured.at("bug=1");
  EXPECT_NE(wrong.failed, "");
  EXPECT_EQ(wrong.us, 0);  // the time of a wrong result is none
  EXPECT_EQ(wrong.rounds, 0);
}

// Times that were recorded, with something planted wherever they are asked for.
class PlantedTimer : public ReplayTimer {
 public:
  using ReplayTimer::ReplayTimer;
  void warm_up(std::size_t) override { warm = true; }
  std::vector<Samples> time(const Indices& candidates, int rounds) override {
    auto all = ReplayTimer::time(candidates, rounds);
    plant(candidates, all);
    return all;
  }
  std::function<void(const Indices&, std::vector<Samples>&)> plant;
  bool warm = false;
};

TEST_F(Tuner, AnInPlaceKernelIsSearchedOnSplitBuffers) {
  space = autotuning::rope_space();
  const Size size = {5, 2, 32};
  const RecordedProblem times = constant_times(space, Us(space.candidates().size(), 10), 3, size);
  // Runs what it is asked to time, as a GPU timer does.
  const auto search_on = [&](Instance& instance, LevelEntry Candidate::*level) {
    PlantedTimer timer(times, space.ids());
    timer.plant = [&](const Indices& candidates, std::vector<Samples>&) {
      for (std::size_t c : candidates) {
        const auto run = (space[c].*level).prepare(instance.problem(), instance.pointers());
        for (int r = 0; r < 2; ++r) run(Stream{});
      }
      synchronize();
    };
    search(space, size, timer);
  };
  // Without it: a search on the user's buffer turns x again and again.
  Instance in_place(space.problem, size, InputKind::normal, 1);
  const std::uint64_t before = in_place.output_hash();
  search_on(in_place, &Candidate::level);
  EXPECT_NE(in_place.output_hash(), before);
  EXPECT_FALSE(in_place.compare().ok) << "many turns look like one";
  // With it: `in` is what it was, and `out` is right after any number of runs.
  ASSERT_TRUE(space.search_problem.has_value());
  Instance split(space.searched(), size, InputKind::normal, 1);
  search_on(split, &Candidate::search);
  const Instance::Comparison after = split.compare();
  EXPECT_TRUE(after.ok) << after.message;
  // No tensor that a search runs on may be both input and output, in any space of the chapter.
  for (const Space* each : autotuning::all_spaces()) {
    const Ladder& searched = each->searched();
    for (const TensorSpec& spec : searched.make_problem(searched.check_size, {})->tensors()) {
      EXPECT_NE(spec.role, Role::in_out) << each->kernel << " " << spec.name;
    }
  }
}

// --- timing --------------------------------------------------------------------------------------

// While nobody has warmed a GPU up, clocks are low and caches cold when a round begins, so that its
// first configuration takes twice as long as it would.
TEST_F(Tuner, TheFirstConfigurationIsNotTimedCold) {
  // The first, the default, is the fastest by 5 %.
  const RecordedProblem problem = constant_times(space, {100, 105, 105, 105}, 10);
  const auto winner = [&](bool can_be_warmed) {
    PlantedTimer timer(problem, space.ids());
    timer.plant = [&](const Indices&, std::vector<Samples>& all) {
      if (timer.warm && can_be_warmed) return;
      for (double& us : all.front().us) us *= 2;
    };
    return search(space, problem.size, timer).entry.winner();
  };
  EXPECT_EQ(winner(true), space[0].id()) << "the search did not warm the GPU up";
  // Planted: without an effective warm-up the search chooses wrongly.
  EXPECT_NE(winner(false), space[0].id()) << "the planted cold start does not show";
}

// Clocks that fall while a search runs, as they do when a GPU gets hot.
TEST_F(Tuner, ConfigurationsAreTimedInterleaved) {
  const auto sinking_clocks = [slower = 1.0](const Indices&, std::vector<Samples>& all) mutable {
    for (std::size_t r = 0; r < all[0].us.size(); ++r, slower *= 1.01) {
      for (Samples& samples : all) samples.us[r] *= slower;
    }
  };
  const RecordedProblem problem = constant_times(space, {110, 107, 104, 101}, 10);
  PlantedTimer one_after_another(problem, space.ids()), timer(problem, space.ids());
  one_after_another.plant = timer.plant = sinking_clocks;
  const double first = median(one_after_another.time({0}, 25)[0].us);
  const double last = median(one_after_another.time({3}, 25)[0].us);
  EXPECT_LT(first, last) << "the planted drift does not show";
  EXPECT_EQ(search(space, problem.size, timer).entry.winner(), space[3].id());
}

// A GPU that a search drives to its power limit: other times while it looks, launch after launch,
// than where a ladder times its levels.
struct PowerLimitedGpu : ReplayTimer {
  using ReplayTimer::ReplayTimer;
  std::vector<Samples> time_as_ladder(const Indices& candidates) override {
    return as_ladder->time_as_ladder(candidates);
  }
  ReplayTimer* as_ladder = nullptr;
};

Report search_hot(const Space& space, const Us& hot_us, const Us& ladder_us,
                  std::optional<std::size_t> fixed = std::nullopt) {
  const RecordedProblem hot = constant_times(space, hot_us, 10);
  const RecordedProblem cool = constant_times(space, ladder_us, 10);
  ReplayTimer as_ladder(cool, space.ids());
  PowerLimitedGpu timer(hot, space.ids());
  timer.as_ladder = &as_ladder;
  Survivors all = everyone(space);
  all.fixed = fixed;
  const auto any = space.problem.make_problem(hot.size, {});
  return tune(space, hot.size, *any, device_info(), all, timer, nullptr, {});
}

TEST_F(Tuner, WhatWinsOnlyWhileTheSearchKeepsTheGpuHotIsNotKept) {
  const Us hot = {712, 685, 760, 800}, cool = {617, 630, 660, 700};
  const std::string leader = space[1].id();
  const Report report = search_hot(space, hot, cool);
  EXPECT_EQ(report.entry.winner(), space[0].id());
  EXPECT_NEAR(report.entry.measured.at(leader).ratio, 617.0 / 630, 1e-9);
  const std::string text = printed(report);
  EXPECT_CONTAINS(text, "The default stays");
  // The table has what was measured, the fastest first.
  const auto first = text.find(" 617.00 "), second = text.find(" 630.00 ");
  EXPECT_NE(second, std::string::npos) << text;
  EXPECT_LT(first, second) << text;
  EXPECT_CONTAINS(text, "Not confirmed after the search: " + leader +
                            " (1.039x the default in the search, 0.979x timed as a ladder)");
  // If finalists were timed as hot as in the search, it would choose wrongly.
  const Report wrong = search_hot(space, hot, hot);
  EXPECT_EQ(wrong.entry.winner(), leader) << "the planted heat does not show";
  const std::string sets = differences(space[0].parameters, space[1].parameters);
  EXPECT_CONTAINS(printed(wrong), "Chosen: " + leader + ", 1.039x the default; it sets " + sets);
  // The best fixed configuration is timed in the same way.
  const Report fixed = search_hot(space, hot, {617, 630, 590, 700}, 2);
  EXPECT_EQ(fixed.entry.winner(), space[2].id());
  EXPECT_CONTAINS(fixed.unconfirmed, leader);
}

TEST_F(Tuner, AWinnerIsConfirmedAsALadderWouldTimeIt) {
  const Report report = search_hot(space, {712, 685, 760, 800}, {617, 590, 660, 700});
  EXPECT_EQ(report.entry.winner(), space[1].id());
  // What is remembered is the confirmation, not what the search saw.
  EXPECT_NEAR(report.entry.measured.at(space[1].id()).ratio, 617.0 / 590, 1e-9);
  EXPECT_NEAR(report.entry.measured.at(space[0].id()).us, 617, 1e-9);
  EXPECT_EQ(report.unconfirmed, "");
  EXPECT_LACKS(printed(report), "Not confirmed");
}

TEST_F(Tuner, RefusesToTimeUnderAProfiler) {
  auto nothing = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(why_not_time(nothing, "7f00 /lib/libc.so.6"), "");
  for (const char* name : {"CUDA_INJECTION64_PATH", "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
                           "NV_NSIGHT_INJECTION_TRANSPORT_TYPE"}) {
    const auto planted = [name](const char* asked) -> const char* {
      return std::string(asked) == name ? "x" : nullptr;
    };
    EXPECT_CONTAINS(why_not_time(planted, ""), name);
  }
  EXPECT_NE(why_not_time(nothing, "7f00 /opt/nvidia/nsight-compute/libcuda-injection.so"), "");
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_NE(why_not_time(), "");
  const std::string said = error_of<std::runtime_error>([&] {
    tune_on_device(autotuning::rmsnorm_space(), {64, 64}, {}, {}, Cache(folder / "c"));
  });
  EXPECT_CONTAINS(said, "CUDA_LAUNCH_BLOCKING");
  EXPECT_FALSE(fs::exists(folder / "c"));
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST_F(Tuner, ASecondRunIsACacheHit) {
  const auto decided = [&](const char* file) { return gpu.decided(Cache(folder / file)); };
  EXPECT_EQ(decided("c").candidate, 2u);
  EXPECT_EQ(gpu.searches, 1);
  const Decision again = decided("c");  // as another process would: nothing but the file is shared
  EXPECT_EQ(again.candidate, 2u);
  EXPECT_CONTAINS(again.why, "cached");
  EXPECT_EQ(gpu.searches, 1) << "searched again for what the cache holds";
  // One base off its boundary and the other not: no layout that a search tries is like that, and
  // still there is one search.
  MadeUpGpu mixed(space);
  mixed.pointers = pointers_at(4, 0), mixed.searched = pointers_at(4, 4);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(mixed.decided(Cache(folder / "mixed")).candidate, 2u);
    EXPECT_EQ(mixed.searches, 1);
  }
  // Another driver is another key: times of the old driver do not count.
  gpu.machine.device.driver = "another";
  decided("c");
  EXPECT_EQ(gpu.searches, 2);
  // Too small to be worth it.
  EXPECT_EQ(gpu.decided(Cache(folder / "c"), {4, 64}).candidate, 0u);
  EXPECT_EQ(gpu.searches, 2);
  // In and out are 1 MB together, and a row less.
  for (const auto& [rows, searches] : {std::pair{511, 2}, {512, 3}}) {
    gpu.decided(Cache(folder / "edge"), {rows, 256});
    EXPECT_EQ(gpu.searches, searches) << rows;
  }
  // `read` and `off` never search; `off` does not even look.
  autotune("read");
  EXPECT_EQ(decided("c").candidate, 2u);
  EXPECT_EQ(decided("empty").candidate, 0u);
  autotune("off");
  EXPECT_EQ(decided("c").candidate, 0u);
  EXPECT_EQ(gpu.searches, 3);
}

// A cache that came from elsewhere, or from before the space changed under the same key.
TEST_F(Tuner, ACachedWinnerThatThisGpuCannotRunIsNotLaunched) {
  space = synthetic_space(3, 1);
  Candidate large = configuration({{"tile", 512}}, space[0].level);
  large.level.supports = [](const AnyProblem&, const DeviceInfo& device) {
    return device.smem_per_block_bytes >= 200000 ? Support::yes() : Support::no("too large");
  };
  space.add(large);
  space.add(configuration({{"tile", 1024}}, {}, "was never compiled"));
  const auto cached = [&](const std::string& winner, const char* file) {
    const Entry entry = gpu.entry_won_by(winner);
    const Cache cache(folder / file);
    cache.add(entry);
    EXPECT_EQ(cache.find(entry.key)->winner(), winner);
    return cache;
  };
  gpu.machine.device.smem_per_block_bytes = 232448;
  const Decision able = gpu.decided(cached("tile=512", "able"));
  EXPECT_EQ(able.candidate, 3u);
  EXPECT_CONTAINS(able.why, "cached");
  EXPECT_EQ(gpu.searches, 0);
  // The same entry on a GPU with less shared memory; an unsupported one; one that is gone.
  int searches = 0;
  for (const auto& [winner, smem] : {std::pair{"tile=512", 100000}, std::pair{"tile=1024", 232448},
                                     std::pair{"tile=7", 232448}}) {
    gpu.machine.device.smem_per_block_bytes = static_cast<std::size_t>(smem);
    const Cache cache = cached(winner, winner);
    autotune("read");
    const Decision read = gpu.decided(cache);
    EXPECT_EQ(read.candidate, 0u) << winner;
    EXPECT_LACKS(read.why, "cached");
    EXPECT_EQ(gpu.searches, searches);
    autotune("tune");
    const Decision searched = gpu.decided(cache);
    EXPECT_EQ(gpu.searches, ++searches) << winner << " was launched: " << searched.why;
    EXPECT_EQ(searched.candidate, 2u);
  }
}

// After an edit of the kernel's source, earlier times do not count.
TEST_F(Tuner, AfterAnEditOfTheSourceTheOldWinnerIsNotUsed) {
  autotune("read");
  const Cache cache(folder / "c");
  enter_tokens({{"edit/before.cuh", "1"}, {"edit/after.cuh", "2"}});
  space.source = "edit/before.cuh";
  cache.add(gpu.entry_won_by(space[1].id()));
  EXPECT_EQ(gpu.decided(cache).candidate, 1u);
  space.source = "edit/after.cuh";
  EXPECT_EQ(gpu.decided(cache).candidate, 0u) << "a stale winner";
}

TEST_F(Tuner, UnderAProfilerTheCacheIsReadAndNothingIsTimed) {
  const Cache cache(folder / "c");
  gpu.profiler = "a profiler serialises launches";
  const Decision decision = gpu.decided(cache);
  EXPECT_EQ(decision.candidate, 0u);
  EXPECT_CONTAINS(decision.why, gpu.profiler);
  EXPECT_EQ(gpu.searches, 0);
  EXPECT_FALSE(fs::exists(cache.file())) << "remembered what nobody measured";
  gpu.profiler.clear();
  gpu.decided(cache);
  gpu.profiler = "a profiler serialises launches";
  EXPECT_EQ(gpu.decided(cache).candidate, 2u);
  EXPECT_EQ(gpu.searches, 1);
}

TEST_F(Tuner, TheHotPathNeverDecidesAgain) {
  autotune("read");
  setenv("XDG_CACHE_HOME", (folder / "x").c_str(), 1);
  space = autotuning::rmsnorm_space();
  Instance instance(space.problem, {4, 64}, InputKind::normal, 1);
  const Chapter chapter = chapter_11_entry();
  const auto ladder = std::ranges::find(chapter.ladders, "rmsnorm", &Ladder::name);
  ASSERT_NE(ladder, chapter.ladders.end());
  const LevelEntry* tuned = ladder->find("tuned");
  ASSERT_TRUE(tuned);
  EXPECT_EQ(decisions_on_hot_path(*tuned, instance, 100), 0u);
  // Planted: a level that looks the configuration up at every call.
  LevelEntry rebuilds;
  rebuilds.prepare = [this](const AnyProblem& problem, const DevicePointers& at) {
    return std::function<void(Stream)>([this, &problem, at](Stream stream) {
      space[decide(space, problem, at).candidate].level.prepare(problem, at)(stream);
    });
  };
  EXPECT_EQ(decisions_on_hot_path(rebuilds, instance, 10), 10u);
  unsetenv("XDG_CACHE_HOME");
}

// A GPU whose times are made up, while the kernels run here. Named by configuration or library;
// nothing: it fails.
struct MadeUpSampler {
  std::map<std::string, double> us;
  std::vector<BenchOptions> asked;
  std::vector<std::vector<std::string>> timed;
  static void expect_asked(const BenchOptions& options, int min_rounds, int max_rounds) {
    EXPECT_EQ(options.min_rounds, min_rounds);
    EXPECT_EQ(options.max_rounds, max_rounds);
  }
  Sampler sampler() {
    return [this](const std::vector<Contender>& contenders, const BenchOptions& options) {
      asked.push_back(options);
      timed.emplace_back();
      std::vector<Measurement> all;
      for (const Contender& each : contenders) {
        timed.back().push_back(each.name);
        each.run(Stream{});
        Measurement& m = all.emplace_back();
        const auto at = us.find(each.name);
        if (at == us.end()) {
          m.cold_us.assign(2, 1.0);  // what it took before it failed
          m.error = "an illegal address";
        } else {
          m.cold_us.assign(static_cast<std::size_t>(options.min_rounds), at->second);
        }
      }
      synchronize();
      return all;
    };
  }
};

// The kernels run, and their times are made up.
class Device : public Tuner {
 protected:
  MadeUpSampler timer;
  const Cache cache = Cache(folder / "c");
  TuneOptions options;
};

TEST_F(Device, WhatASearchKeepsIsFoundByAPlanWithTheSameLayout) {
  timer.us = {{space[0].id(), 100}, {space[1].id(), 90}, {space[2].id(), 50}};
  options.search_rounds = 7;
  const Size size = {4, 64};
  alignas(256) static float buffer[64];
  std::set<std::string> keys;
  for (const Variant& variant : {Variant{0, 0}, Variant{1, 0}, Variant{0, 1}}) {
    timer.asked.clear(), timer.timed.clear();
    const Report report = tune_on_device(space, size, variant, options, cache, timer.sampler());
    ASSERT_EQ(report.problem, "");
    EXPECT_EQ(report.not_kept, "");
    EXPECT_EQ(report.entry.winner(), space[2].id());
    expect_fate(report.fates[3], Stage::failed, "an illegal address");
    EXPECT_GT(report.seconds, 1.0) << "the GPU may cool before the finals";
    // Looks of as many rounds as were asked for; finals with the options of a ladder; never hot.
    ASSERT_GE(timer.asked.size(), 2u);
    EXPECT_EQ(timer.timed.front().size(), 4u);
    timer.expect_asked(timer.asked.front(), 7, 7);
    timer.expect_asked(timer.asked.back(), BenchOptions().min_rounds, BenchOptions().max_rounds);
    for (const BenchOptions& each : timer.asked) EXPECT_FALSE(each.hot);
    // A plan on buffers laid out like that is a cache hit.
    const auto base = reinterpret_cast<std::uintptr_t>(buffer + variant.misalign_elements);
    Machine machine = this_machine();
    machine.device.is_simt = false;
    machine.search = [](const Space&, const Size&, const Variant&, const TuneOptions&,
                        const Cache&) -> Report { throw std::logic_error("searched again"); };
    const auto problem = space.problem.make_problem(size, variant);
    const Decision decision = decide(space, *problem, pointers_at(base, base), cache, machine);
    EXPECT_EQ(decision.candidate, 2u);
    EXPECT_EQ(decision.why, "cached in " + cache.file());
    keys.insert(report.entry.key.digest());
  }
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(cache.entries().size(), 3u);
}

TEST_F(Device, AShardsReportHoldsWhatTheOthersFound) {
  for (std::size_t c = 0; c < 4; ++c) timer.us[space[c].id()] = c == 3 ? 50 : 100;
  options.shard = {0, 2};
  const Report first = tune_on_device(space, {4, 64}, {}, options, cache, timer.sampler());
  EXPECT_EQ(first.entry.measured.size(), 3u) << "the default, and every second one of the others";
  EXPECT_EQ(first.entry.winner(), space[3].id());
  options.shard = {1, 2};
  const Report second = tune_on_device(space, {4, 64}, {}, options, cache, timer.sampler());
  EXPECT_EQ(second.entry.measured.size(), 4u);
  EXPECT_EQ(second.entry.winner(), space[3].id()) << "which this shard has not timed";
}

TEST_F(Device, ARecordingHoldsEveryConfigurationAndLibraryOnEveryShape) {
  space = synthetic_space(3, 1);
  space.training = {{4, 64}, {16, 128}};
  space.held_out = {{8, 100}};
  space.add(configuration({{"tile", 1024}}, {}, "was never compiled"));
  space.add(configuration({{"tile", 7}}, make_level<planted::Reverse<Bug::nan_produced>>()));
  std::vector<ReferenceEntry> libraries(3, space[0].level);
  libraries[0].name = "library", libraries[1].name = "broken", libraries[2].name = "elsewhere";
  libraries[2].supports = [](const AnyProblem&, const DeviceInfo&) { return Support::no("no"); };
  timer.us = {{space[0].id(), 100}, {space[1].id(), 90}, {"library", 70}, {space[4].id(), 1}};
  std::string said;
  const Recording recording = record(
      space, libraries, 11, [&](const std::string& text) { said += text; }, timer.sampler());
  EXPECT_EQ(recording.kernel, "synthetic");
  EXPECT_EQ(recording.device.name, device_info().name);
  EXPECT_EQ(recording.tokens, token_hash(space.source));
  EXPECT_FALSE(recording.date.empty());
  EXPECT_EQ(recording.parameters.size(), 5u);
  EXPECT_EQ(value_of(recording.parameters.at(space[1].id()), "tile"), 32);
  ASSERT_EQ(recording.problems.size(), 3u);
  const std::vector<Size> sizes = {{4, 64}, {16, 128}, {8, 100}};
  for (std::size_t p = 0; p < 3; ++p) {
    const RecordedProblem& problem = recording.problems[p];
    EXPECT_EQ(problem.size, sizes[p]);
    EXPECT_EQ(problem.held_out, p == 2);
    EXPECT_EQ(problem.bytes, 8.0 * static_cast<double>(sizes[p][0] * sizes[p][1]));
    ASSERT_EQ(problem.configurations.size(), 5u);
    const auto us = [&](std::size_t c) { return problem.configurations.at(space[c].id()).us; };
    EXPECT_EQ(us(0), std::vector<double>(11, 100));
    EXPECT_EQ(us(1), std::vector<double>(11, 90));
    EXPECT_EQ(problem.configurations.at(space[2].id()).failure, "an illegal address");
    EXPECT_EQ(problem.configurations.at(space[3].id()).failure, "was never compiled");
    EXPECT_CONTAINS(problem.configurations.at(space[4].id()).failure, "nan");
    for (const std::size_t c : {2, 3, 4}) EXPECT_TRUE(us(c).empty()) << c;
    ASSERT_EQ(problem.libraries.size(), 2u);
    EXPECT_EQ(problem.libraries.at("library").us, std::vector<double>(11, 70));
    EXPECT_EQ(problem.libraries.at("broken").failure, "an illegal address");
    EXPECT_TRUE(problem.libraries.at("broken").us.empty());
    // Everything of a shape in the same rounds, so that samples pair.
    EXPECT_EQ(timer.timed.at(p).size(), 5u);
    timer.expect_asked(timer.asked.at(p), 11, 11);
    EXPECT_FALSE(timer.asked.at(p).hot);
  }
  EXPECT_EQ(timer.timed.size(), 3u);
  EXPECT_FALSE(said.empty());
}

#if COOKBOOK_SIMT
// 32 MiB are checked small. At full size the fastest is checked once more, and the next fastest
// where that is wrong.
TEST_F(Device, TheFastestOfARecordingIsRightAtFullSize) {
  const Space other = synthetic_space(5, 1);
  space = synthetic_space(0, 0);
  space.training = {{16500, 256}};
  space.held_out = {};
  for (std::size_t c = 0; c < 5; ++c) {
    Candidate each = other[c];
    each.level.prepare = [c](const AnyProblem& problem, const DevicePointers& at) {
      const auto& p = *static_cast<const planted::Problem*>(problem.get());
      if (c == 1 && p.rows > 1000) throw std::runtime_error("out of memory");
      const planted::Buffers b = planted::Buffers::bind(at);
      return std::function<void(Stream)>([=](Stream) {
        for (std::int64_t i = 0; i < p.rows * p.cols; ++i) {
          b.out[i] = 2 * b.in[i / p.cols * p.cols + p.cols - 1 - i % p.cols];
        }
        if (c >= 2 && p.rows > 1000) b.out[0] += 1;
      });
    };
    each.search = each.level;
    space.add(each);
  }
  // Only the first is right; the last is wrong too, but nobody will look at it.
  timer.us = {{space[0].id(), 70}, {space[2].id(), 60}, {space[3].id(), 50}, {space[4].id(), 80}};
  using Clock = std::chrono::steady_clock;
  Clock::time_point said, sampled;
  const Recording recording = record(
      space, {}, 3, [&](const std::string&) { said = Clock::now(); },
      [&](const std::vector<Contender>& contenders, const BenchOptions& options) {
        sampled = Clock::now();
        return timer.sampler()(contenders, options);
      });
  EXPECT_GE(sampled - said, std::chrono::milliseconds(300)) << "the GPU is not warm";
  const auto& found = recording.problems.at(0).configurations;
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found.at(space[0].id()).us, std::vector<double>(3, 70));
  EXPECT_EQ(found.at(space[1].id()).failure, "out of memory");
  EXPECT_EQ(found.at(space[4].id()).us, std::vector<double>(3, 80));
  for (const std::size_t c : {1, 2, 3}) EXPECT_TRUE(found.at(space[c].id()).us.empty()) << c;
  for (const std::size_t c : {2, 3}) EXPECT_NE(found.at(space[c].id()).failure, "") << c;
  EXPECT_EQ(timer.timed.at(0).size(), 4u);
}

TEST_F(Device, WithoutAGpuNothingIsTimed) {
  EXPECT_EQ(error_of<std::runtime_error>([&] {
              tune_on_device(space, {4, 64}, {}, {}, cache);
            }),
            "tuning needs a GPU: on the SIMT backend there is nothing to time");
  EXPECT_EQ(error_of<std::runtime_error>([&] { record(space, {}, 3, [](const std::string&) {}); }),
            "recording needs a GPU: on the SIMT backend there is nothing to time");
  EXPECT_FALSE(fs::exists(cache.file()));
}
#endif

TEST_F(Tuner, WithinNoiseTheDefaultStays) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(100, 2);
  int changed = 0;
  for (int trial = 0; trial < 20; ++trial) {
    RecordedProblem problem;
    problem.size = {4, 64};
    for (const Candidate& each : space.candidates()) {
      for (int r = 0; r < 60; ++r) problem.configurations[each.id()].us.push_back(noise(random));
    }
    const Report report = search(space, problem);
    changed += report.entry.winner() != report.entry.default_id;
    // Now and then an interval excludes 1 by chance; then what is won is tiny and nothing is lost.
    EXPECT_LT(report.entry.measured.at(report.entry.winner()).ratio, 1.03);
  }
  EXPECT_LE(changed, 1);
}

TEST_F(Tuner, UnderTwoPercentIsTheSame) {
  static_assert(worth_changing(1.02, 1.001) && !worth_changing(1.0199, 1.015));
  static_assert(!worth_changing(1.5, 1.0), "faster, but not beyond noise");
  // Without any noise: every interval excludes 1.
  const Report same = tuned_on(space, {100, 99, 98.5, 110});  // 1.010 and 1.015
  EXPECT_EQ(same.entry.winner(), space[0].id());
  EXPECT_GT(same.entry.measured.at(space[2].id()).low, 1);
  EXPECT_CONTAINS(same.tie, space[2].id());
  EXPECT_EQ(tuned_on(space, {100, 99, 97.5, 110}).entry.winner(), space[2].id());  // 1.026
}

TEST_F(Tuner, WhatDoesBestOnManyShapesGivesWayOnlyToWhatIsWorthIt) {
  Entry entry;
  entry.default_id = "default", entry.fixed_id = "fixed";
  const auto winner = [&entry](Measured fixed, Measured other) {
    entry.measured = {{"default", {10, 1, 1, 1, 25, ""}}, {"fixed", fixed}, {"other", other}};
    return entry.winner();
  };
  const Measured good{9.7, 1.03, 1.02, 1.04, 25, ""}, wrong{0, 0, 0, 0, 0, "wrong"};
  EXPECT_EQ(winner(good, {9.6, 1.04, 1.035, 1.05, 25, ""}), "fixed");  // 1.01 times as fast
  EXPECT_EQ(winner(good, {9.4, 1.06, 1.02, 1.10, 25, ""}), "fixed");   // or not: noise
  EXPECT_EQ(winner(good, {9.4, 1.06, 1.05, 1.07, 25, ""}), "other");
  EXPECT_EQ(winner(wrong, {9.7, 1.03, 1.02, 1.04, 25, ""}), "other");
  EXPECT_EQ(winner({9.9, 1.01, 1.005, 1.02, 25, ""}, {9.7, 1.03, 1.02, 1.04, 25, ""}), "other");
  EXPECT_EQ(winner({9.9, 1.01, 1.005, 1.02, 25, ""}, wrong), "default");
  EXPECT_EQ(winner(wrong, wrong), "default");
}

TEST_F(Tuner, WhatOnlyTheSearchSawDoesNotWin) {
  Entry seen;
  seen.default_id = "default";
  seen.measured = {{"default", {10, 1, 1, 1, 9, ""}}, {"other", {9.5, 1.05, 1.04, 1.06, 0, ""}}};
  EXPECT_EQ(seen.winner(), "default");
  // And where another process had it among its finalists, that is what counts.
  Entry confirmed = seen;
  confirmed.measured["other"] = {9, 1.11, 1.10, 1.12, 9, ""};
  EXPECT_EQ(joined(seen, confirmed).winner(), "other");
  EXPECT_EQ(joined(confirmed, seen).measured.at("other").ratio, 1.11);
}

TEST_F(Tuner, FindsTheBestOfEveryRecordedShapeAndIsNeverSlowerThanTheDefault) {
  space = synthetic_space();
  const Recording recording = synthetic_recording(space);
  for (const RecordedProblem& problem : recording.problems) {
    const Report report = replay(space, recording, problem.size);
    const double us = true_us(space, report.entry.winner(), problem.size);
    EXPECT_LE(us, kLeastGain * 1.005 * least_us(space, problem.size));
    EXPECT_LE(us, 1.005 * true_us(space, space[0].id(), problem.size));
    print(report, space);
  }
  const Verdicts verdicts = judge(space, recording);
  EXPECT_GE(verdicts.tuned_over_fixed.worst, 0.98);
  EXPECT_GE(verdicts.held_out_over_fixed.worst, 0.98);
  EXPECT_GT(verdicts.tuned_over_fixed.mean, 1.02);
  print_replay(space, recording);
}

TEST_F(Tuner, TheSwitch) {
  for (const auto& [text, mode] : {std::pair{"off", Mode::off}, std::pair{"read", Mode::read},
                                   std::pair{"tune", Mode::tune}}) {
    autotune(text);
    EXPECT_EQ(mode_from_environment(), mode);
  }
  autotune("maybe");
  EXPECT_THROW(mode_from_environment(), std::invalid_argument);
  autotune(nullptr);
  EXPECT_EQ(mode_from_environment(), Mode::tune);
}

// --- searchers and recordings --------------------------------------------------------------------

TEST(Searchers, FindTheBestWithinTheirBudget) {
  Space space = synthetic_space();
  space.model = [](const Parameters& p, const Size& size, const DeviceInfo&) {
    return synthetic_us(p, size) * (value_of(p, "stages") == 3 ? 1.01 : 1);  // nearly right
  };
  const Recording recording = synthetic_recording(space, 0.001);
  for (const SearcherScore& score : score_searchers(space, recording, 5)) {
    EXPECT_EQ(score.arrived, 1) << score.name;
    EXPECT_LE(score.slowdown.back(), 1.02) << score.name;
    if (score.name == "model") {
      EXPECT_LE(score.median_looks, 2);
    }
  }
}

TEST(Searchers, StayWithinTheBudgetAndSurviveFailures) {
  const Space space = synthetic_space();
  Recording recording = synthetic_recording(space);
  RecordedProblem& problem = recording.problems.front();
  problem.configurations[space[3].id()] = {{}, "an illegal address"};
  Arena arena;
  arena.space = &space, arena.candidates = everyone(space).indices, arena.size = problem.size;
  arena.device = recording.device;
  for (const NamedSearcher& searcher : searchers()) {
    for (const int looks : {1, 5, 1000}) {
      arena.looks = looks;
      ReplayTimer timer(problem, space.ids());
      const Search search = searcher.run(arena, timer);
      EXPECT_TRUE(search.found) << searcher.name;
      EXPECT_NE(search.best, 3u);
      EXPECT_LE(search.steps.back().looks, looks);
    }
  }
}

TEST_F(Recordings, SurviveTheirFileAndBadOnesAreNamed) {
  Recording recording = synthetic_recording(space);
  recording.problems[0].configurations[space[1].id()] = {{}, "too \"large\""};
  recording.problems[0].libraries["library"].us = {1.5, std::nan(""), 2.5};
  write_recording(recording, folder / "r.json");
  const Recording again = read_recording(folder / "r.json");
  EXPECT_EQ(again.problems.size(), recording.problems.size());
  EXPECT_EQ(again.problems[0].configurations.at(space[1].id()).failure, "too \"large\"");
  EXPECT_TRUE(std::isnan(again.problems[0].libraries.at("library").us[1]));
  const auto sample = [&](const Recording& of) {
    return of.problems[1].configurations.at(space[2].id()).us[7];
  };
  EXPECT_NEAR(sample(again), sample(recording), 1e-3);
  EXPECT_EQ(again.parameters.at(space[2].id()).size(), 2u);
  space.recordings = folder / "";
  std::ofstream(folder / "a.json") << "{\"schema\": 7}";
  std::ofstream(folder / "b.json") << "not json";
  ASSERT_TRUE(find_recording(space, recording.device.cc()).has_value());
  EXPECT_FALSE(find_recording(space, 12).has_value());
  EXPECT_THROW(read_recording(folder / "a.json"), std::runtime_error);
}

TEST_F(Recordings, AreFilesThatAPersonCanRead) {
  Recording r;
  r.kernel = "k", r.commit = "c", r.date = "d", r.tokens = "s";
  r.device.name = "GPU", r.device.driver = "drv", r.device.toolkit = "tk";
  r.device.cc_major = 8, r.device.cc_minor = 7, r.device.sm_count = 3, r.device.l2_bytes = 5;
  r.device.smem_per_block_bytes = 7, r.device.clock_mhz = 11;
  r.parameters["a=1 b=2"] = {{"a", 1}, {"b", 2}};
  RecordedProblem problem;
  problem.size = {4, 64}, problem.held_out = true, problem.bytes = 512, problem.flops = 2.5;
  problem.configurations["a=1 b=2"].us = {1.23456, std::nan("")};
  problem.configurations["z"].failure = "no";
  problem.libraries["lib"].us = {3};
  r.problems = {problem};
  const std::string text = contents(source_path("tests/recording.json"));
  write_recording(r, folder / "r.json");
  EXPECT_EQ(contents(folder / "r.json"), text);
  const Recording again = read_recording(folder / "r.json");
  EXPECT_EQ(again.device.cc_major, 8);
  EXPECT_EQ(again.device.cc_minor, 7);
  ASSERT_NE(again.find({4, 64}), nullptr);
  EXPECT_EQ(again.find({64, 4}), nullptr);
  std::ofstream(folder / "2.json")
      << std::string(text).replace(text.find("recording 1"), 11, "recording 2");
  for (const auto& [file, why] :
       {std::pair{"2.json",
                  "schema \"kernel-cookbook recording 2\", not \"kernel-cookbook "
                  "recording 1\""},
        std::pair{"none.json", "cannot be opened"}}) {
    const std::string path = folder / file;
    EXPECT_EQ(error_of<std::runtime_error>([&] { read_recording(path); }),
              "recording " + path + ": " + why);
  }
  write_recording(again, folder / "again.json");  // so nothing was lost
  EXPECT_EQ(contents(folder / "again.json"), text);
  // The first file of the kernel and the architecture counts; what is no .json does not.
  space.kernel = "k", space.recordings = folder / "all";
  fs::create_directory(folder / "all");
  const auto add = [&](const char* file, const char* kernel, int cc_minor, const char* commit) {
    r.kernel = kernel, r.device.cc_minor = cc_minor, r.commit = commit;
    write_recording(r, folder / "all/" + file);
  };
  add("5.json", "k", 7, "fifth"), add("4.json", "k", 7, "fourth"), add("3.txt", "k", 7, "text");
  add("2.json", "k", 6, "second"), add("1.json", "j", 7, "first");
  EXPECT_EQ(find_recording(space, 87).value().commit, "fourth");
  EXPECT_EQ(find_recording(space, 86).value().commit, "second");
  EXPECT_FALSE(find_recording(space, 90).has_value());
}

TEST_F(Recordings, ArePlayedBackRoundByRound) {
  RecordedProblem problem;
  problem.configurations["a"].us = {1, 2, 3};
  problem.configurations["b"] = {{4}, "broke"};
  problem.configurations["c"];
  problem.configurations["e"].us = {9, 8, 7, 6};
  ReplayTimer timer(problem, {"a", "b", "c", "d", "e"});
  const auto first = timer.time({0, 1, 2, 3, 4}, 2);
  EXPECT_EQ(first[0].us, (Us{1, 2}));
  EXPECT_EQ(first[1].failure, "broke");
  EXPECT_EQ(first[2].failure, "has no samples");
  EXPECT_EQ(first[3].failure, "was not recorded");
  for (const std::size_t c : {1, 2, 3}) EXPECT_TRUE(first[c].us.empty()) << c;
  EXPECT_EQ(first[4].us, (Us{9, 8}));
  EXPECT_EQ(first[4].failure, "");
  EXPECT_EQ(timer.time({4, 0}, 3)[1].us, (Us{3, 1, 2}));
  // As many rounds as the longest has, from the sixth on.
  const auto ladder = timer.time_as_ladder({0, 4});
  EXPECT_EQ(ladder[0].us, (Us{3, 1, 2, 3}));
  EXPECT_EQ(ladder[1].us, (Us{8, 7, 6, 9}));
}

TEST_F(Recordings, AreChosenOnOneHalfAndScoredOnTheOther) {
  Recording recording;
  RecordedProblem problem;
  problem.configurations["c"].us = {1, 2, 3, 4, 5};
  problem.libraries["l"].us = {6, 7};
  recording.problems = {problem};
  const auto half = [&](Rounds rounds) { return only(rounds, recording).problems[0]; };
  EXPECT_EQ(half(Rounds::odd).configurations["c"].us, (Us{1, 3, 5}));
  EXPECT_EQ(half(Rounds::even).configurations["c"].us, (Us{2, 4}));
  EXPECT_EQ(half(Rounds::odd).libraries["l"].us, Us{6});
  // Planted: configurations that are all alike, as noisy as can be. If the least median is scored
  // on the same samples, it looks like a gain; `judge` finds none.
  space = synthetic_space();
  Recording noise = synthetic_recording(space);
  std::mt19937 random(11);
  std::normal_distribution<double> us(100, 5);
  double flattered = 0;
  for (RecordedProblem& each : noise.problems) {
    double least = std::numeric_limits<double>::infinity();
    for (auto& [id, samples] : each.configurations) {
      for (double& sample : samples.us) sample = us(random);
      least = std::min(least, median(samples.us));
    }
    flattered += 100 / least / static_cast<double>(noise.problems.size());
  }
  EXPECT_GT(flattered, 1.02) << "the planted luck does not show";
  const Verdicts verdicts = judge(space, noise);
  EXPECT_LT(verdicts.tuned_over_fixed.mean, 1.01);
  // Planted: one configuration that is the fastest in odd rounds and the slowest in even ones. It
  // is chosen, and the even rounds show that it is slow.
  Recording moody = synthetic_recording(space);
  for (RecordedProblem& each : moody.problems) {
    for (auto& [id, samples] : each.configurations) {
      for (std::size_t r = 0; r < samples.us.size(); ++r) {
        samples.us[r] = id != space[1].id() ? 100 : r % 2 == 0 ? 90 : 110;
      }
    }
  }
  EXPECT_NEAR(judge(space, moody).tuned_over_default.mean, 100.0 / 110, 1e-9);
}

// Three configurations, five shapes, every sample of a configuration the same.
struct ByHand {
  Space space = synthetic_space(3, 1);
  Recording recording;

  ByHand() {
    recording.kernel = space.kernel, recording.date = "today";
    recording.device = device_info();
    recording.device.driver = "570", recording.device.toolkit = "13.0";
    // tile=16 stages=2, tile=32 stages=2, tile=64 stages=2; the library where it was timed.
    add({1, 16}, false, {100, 50, 100}, 60);
    add({4, 64}, false, {100, 100, 40}, 80);
    add({16, 128}, false, {100, 80, 90}, 0);
    add({2, 200}, true, {100, 200, 50}, 75);
    add({8, 100}, true, {100, 50, 100}, 200);
    space.model = [](const Parameters& p, const Size&, const DeviceInfo&) {
      return std::fabs(static_cast<double>(value_of(p, "tile")) - 20);  // the default's is least
    };
  }

  void add(const Size& size, bool held_out, const std::vector<double>& us, double library) {
    RecordedProblem problem = constant_times(space, us, 20, size);
    problem.held_out = held_out;
    for (const Candidate& each : space.candidates()) {
      recording.parameters[each.id()] = each.parameters;
    }
    if (library > 0) problem.libraries["cuLib"].us.assign(20, library);
    recording.problems.push_back(problem);
  }
};

TEST_F(Recordings, VerdictsByHand) {
  const ByHand hand;
  // The least product of the three training shapes: 100 * 40 * 90, not 50 * 100 * 80.
  const Verdicts v = judge(hand.space, hand.recording);
  EXPECT_EQ(v.fixed, 2u);
  // Each shape's least; tile=64 is not beaten at the second and the fourth.
  EXPECT_NEAR(v.tuned_over_fixed.mean, std::cbrt(2.0 * 1 * 90 / 80), 1e-9);
  EXPECT_EQ(v.tuned_over_fixed.worst, 1);
  EXPECT_NEAR(v.held_out_over_fixed.mean, std::sqrt(1.0 * 2), 1e-9);
  EXPECT_EQ(v.held_out_over_fixed.worst, 1);
  EXPECT_NEAR(v.tuned_over_default.mean, std::pow(2 * 2.5 * 1.25 * 2 * 2, 1.0 / 5), 1e-9);
  EXPECT_NEAR(v.model_over_fixed.mean, std::pow(1 * 0.4 * 0.9 * 0.5 * 1, 1.0 / 5), 1e-9);
  EXPECT_NEAR(v.tuned_over_library.mean, std::pow(1.2 * 2 * 1.5 * 4, 1.0 / 4), 1e-9);
}

// In the order of the space: after one look, two and three.
TEST_F(Recordings, TheExhaustiveSearchByHand) {
  const ByHand hand;
  const auto scores = score_searchers(hand.space, hand.recording, 3);
  const auto exhaustive = std::ranges::find(scores, "exhaustive", &SearcherScore::name);
  ASSERT_NE(exhaustive, scores.end());
  ASSERT_EQ(exhaustive->slowdown.size(), 3u);
  EXPECT_NEAR(exhaustive->slowdown[0], (2 + 2.5 + 1.25 + 2 + 2) / 5, 1e-9);
  EXPECT_NEAR(exhaustive->slowdown[1], (1 + 2.5 + 1 + 2 + 1) / 5, 1e-9);
  EXPECT_EQ(exhaustive->slowdown[2], 1);
  EXPECT_EQ(exhaustive->median_looks, 2);  // of 2, 3, 2, 3, 2
  EXPECT_EQ(exhaustive->arrived, 1);
}

TEST_F(Recordings, AReplaySaysWhatItFound) {
  ByHand hand;
  hand.space.add(candidate<Hungry<300>, HungryLevel>());
  const std::string text = stdout_of([&] { print_replay(hand.space, hand.recording); });
  EXPECT_CONTAINS(text, "synthetic: replayed from " + device_info().name +
                            " (today, driver 570, toolkit 13.0)");
  EXPECT_CONTAINS(text, "gives way only to what is 2 % faster");
  EXPECT_CONTAINS(text,
                  "    tile=16 stages=2  (the default)\n"
                  "    tile=64 stages=2  (the best one for all shapes)\n"
                  "    tile=32 stages=2\n"
                  "    kilobytes=300  illegal: ");
  EXPECT_CONTAINS(text, "  4 configurations in the code, 3 survive on cc ");
  EXPECT_CONTAINS(
      text,
      "  size            us    default best fixed    model's      cuLib   what it sets differently "
      "from the default\n"
      "  1x16         50.00     2.000x     2.000x     2.000x     1.200x   tile 16 -> 32\n"
      "  4x64         40.00     2.500x     1.000x     2.500x     2.000x   tile 16 -> 64\n"
      "  16x128       80.00     1.250x     1.125x     1.250x              tile 16 -> 32\n"
      "  2x200 *      50.00     2.000x     1.000x     2.000x     1.500x   tile 16 -> 64\n"
      "  8x100 *      50.00     2.000x     2.000x     2.000x     4.000x   tile 16 -> 32\n");
  EXPECT_CONTAINS(
      text,
      "    over the best fixed configuration: 1.310 (worst 1.000), held out 1.414 (worst 1.000)\n"
      "    over the default: 1.904; over the library: 1.948\n"
      "    the model alone, over the best fixed configuration: 0.710\n");
}

// A configuration of each fate.
TEST_F(Tuner, AReportSaysWhatBecameOfEveryConfiguration) {
  space = synthetic_space(4, 2);
  const auto id = [&](std::size_t c) { return space[c].id(); };
  Report report;
  report.size = {4, 64}, report.device = "a GPU", report.chosen_by = "a recording";
  report.fates = {{0, Stage::finalist, ""},    {1, Stage::illegal, "too large"},
                  {2, Stage::unsupported, ""}, {3, Stage::pruned, ""},
                  {4, Stage::other_shard, ""}, {5, Stage::failed, "wrong"},
                  {6, Stage::timed, ""},       {7, Stage::finalist, ""}};
  report.entry.default_id = id(0), report.entry.fixed_id = id(6);
  report.entry.measured[id(0)] = {30, 1, 1, 1, 25, ""};
  report.entry.measured[id(6)] = {24, 1.25, 1.2, 1.3, 25, ""};
  report.entry.measured[id(7)] = {20, 1.5, 1.4, 1.6, 25, ""};
  report.entry.measured[id(5)] = {10, 3, 3, 3, 25, "wrong"};
  report.looks = 12, report.seconds = 3.5;
  // The fastest first; what has no time, or has failed, keeps its order.
  EXPECT_EQ(
      printed(report),
      "\nsynthetic at 4x64 on a GPU\n"
      "  8 configurations in the code > 7 compiled > 6 can run this > 5 survive (a recording) > "
      "4 in this shard > 3 right > 2 finalists\n"
      "  configuration              us    speed  95 % interval    fate\n"
      "  tile=128 stages=3       20.00   1.500x  [1.400, 1.600]   finalist\n"
      "  tile=128 stages=2       24.00   1.250x  [1.200, 1.300]   timed, best fixed\n"
      "  tile=16 stages=2        30.00   1.000x  [1.000, 1.000]   finalist, default\n"
      "  tile=16 stages=3                                         illegal: too large\n"
      "  tile=32 stages=2                                         unsupported\n"
      "  tile=32 stages=3                                         pruned\n"
      "  tile=64 stages=2                                         other shard\n"
      "  tile=64 stages=3                                         failed: wrong\n"
      "  Chosen: tile=128 stages=3, 1.500x the default; it sets tile 16 -> 128, stages 2 -> 3.\n"
      "  12 looks, 3.5 s in all.\n");
  // The default stays: the best of the others is named, but not one that may not win.
  report.entry.measured[id(7)] = {29.8, 1.007, 0.99, 1.02, 25, ""};
  report.entry.measured[id(6)] = {29.9, 1.003, 0.99, 1.02, 25, ""};
  report.tie = "a tie";
  const std::string stays = printed(report);
  EXPECT_CONTAINS(
      stays,
      "  The default stays: nothing is faster beyond noise and by 2 %; the best of the others is "
      "1.007x.\n");
  EXPECT_CONTAINS(stays, "  As fast, within noise or 2 %: a tie.\n");
  report.problem = "nothing can run";
  const std::string nothing = printed(report);
  EXPECT_CONTAINS(nothing, "  nothing can run\n");
  EXPECT_LACKS(nothing, "fate");
}

TEST_F(Recordings, TimesAreMediansOfTheTrainingShapesOrTheOthers) {
  ByHand hand;
  hand.recording.problems[0].configurations[hand.space[1].id()].us = {50, 70, 10, 60, 55};
  hand.recording.problems[1].configurations[hand.space[1].id()] = {{}, "failed"};
  hand.recording.problems[2].configurations.erase(hand.space[1].id());
  const TimeMatrix times = recorded_times(hand.space, hand.recording);
  EXPECT_EQ(times.sizes, (std::vector<Size>{{1, 16}, {4, 64}, {16, 128}}));
  using Rows = std::vector<Us>;
  EXPECT_EQ(times.us, (Rows{{100, 100, 100}, {55, kNever, kNever}, {100, 40, 90}}));
  const TimeMatrix held_out = recorded_times(hand.space, hand.recording, true);
  EXPECT_EQ(held_out.sizes, (std::vector<Size>{{2, 200}, {8, 100}}));
  EXPECT_EQ(held_out.us, (Rows{{100, 100}, {200, 50}, {50, 100}}));
}

TEST_F(Recordings, TheBestFixedByHand) {
  const auto best = [](const std::vector<std::vector<double>>& us) {
    return best_fixed({std::vector<Size>(us[0].size()), us});
  };
  EXPECT_EQ(best({{4, 4}, {1, 9}, {2, 9}}), 1u);    // products 16, 9 and 18
  EXPECT_EQ(best({{4, 4}, {8, 2}, {2, 8}}), 0u);    // all alike: the first
  EXPECT_EQ(best({{kNever, kNever}, {3, 3}}), 1u);  // what never runs is not the best
  // Where the first cannot run, the first that can stands in: 2 * 5.
  EXPECT_EQ(best({{2, kNever}, {3, 5}, {11, 1}}), 0u);
  EXPECT_EQ(best({{2, kNever}, {3, 5}, {9, 1}}), 2u);
  EXPECT_EQ(best({{kNever, 4}, {kNever, 3}}), 1u);  // nothing runs the first shape
}

TEST_F(Recordings, TheSpaceShrinksByHand) {
  const auto kept = [](const std::vector<std::vector<double>>& us, std::size_t count) {
    return shrink({std::vector<Size>(us[0].size()), us}, count);
  };
  // The first that runs at all, the best fixed one (8 * 8 * 8), then what brings most: 8 times as
  // fast on the first shape, 4 times on the second, 8 / 7 times on the third. The last never wins.
  const std::vector<std::vector<double>> us = {{kNever, kNever, kNever},
                                               {10, 10, 10},
                                               {8, 8, 8},
                                               {9, 9, 7},
                                               {40, 2, 40},
                                               {1, 30, 30},
                                               {10, 10, 10}};
  EXPECT_EQ(kept(us, 2), (Indices{1, 2}));
  EXPECT_EQ(kept(us, 3), (Indices{1, 2, 5}));
  EXPECT_EQ(kept(us, 4), (Indices{1, 2, 5, 4}));
  EXPECT_EQ(kept(us, 5), (Indices{1, 2, 5, 4, 3}));
  EXPECT_EQ(kept(us, 9), (Indices{1, 2, 5, 4, 3}));
  // Where nothing that is kept can run, that counts as ten times as slow: more than 8, less
  // than 12.
  EXPECT_EQ(kept({{8, kNever, 1}, {1, kNever, 9}, {9, 5, 1}}, 2), (Indices{0, 2}));
  EXPECT_EQ(kept({{12, kNever, 1}, {1, kNever, 13}, {13, 5, 1}}, 2), (Indices{0, 1}));
  // A shape that nothing can run decides nothing, and an empty space keeps nothing.
  EXPECT_EQ(kept({{kNever, 4}, {kNever, 3}, {kNever, 5}}, 3), (Indices{0, 1}));
  EXPECT_EQ(kept({{kNever}, {kNever}}, 2), Indices{});
}

TEST_F(Recordings, TheSpaceShrinksToWhatEverWins) {
  space = synthetic_space();
  const TimeMatrix times = recorded_times(space, synthetic_recording(space));
  const auto kept = shrink(times, kMostSurvivors);
  EXPECT_LE(kept.size(), kMostSurvivors);
  EXPECT_EQ(kept.front(), 0u) << "the default went missing";
  EXPECT_EQ(std::ranges::count(kept, best_fixed(times)), 1);
  for (std::size_t s = 0; s < times.sizes.size(); ++s) {
    double best = 1e30, best_kept = 1e30;
    for (const auto& row : times.us) best = std::min(best, row[s]);
    for (std::size_t c : kept) best_kept = std::min(best_kept, times.us[c][s]);
    EXPECT_LE(best_kept, 1.01 * best);
  }
}

// --- what is committed ---------------------------------------------------------------------------

const Recording* committed(const Space& space) {
  static std::map<std::string, std::optional<Recording>> all;
  auto& found = all[space.kernel];
  if (!found) found = find_recording(space, 90);
  return found ? &*found : nullptr;
}

// Every space has been recorded: a recording that is lost is an error.
std::vector<const Space*> recorded_spaces() {
  std::vector<const Space*> found;
  for (const Space* space : autotuning::all_spaces()) {
    EXPECT_TRUE(committed(*space)) << space->kernel << ": its recording is gone";
    if (committed(*space)) found.push_back(space);
  }
  return found;
}

TEST_F(Committed, TheBestFixedLevelIsTheBestOfTheRecording) {
  for (const Space* space : recorded_spaces()) {
    const Recording* recording = committed(*space);
    // Computed once more, without the tuner: the least geometric mean of times over training
    // shapes.
    std::string best;
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& each : space->candidates()) {
      if (!each.illegal.empty()) continue;
      double sum = 0;
      for (const RecordedProblem& problem : recording->problems) {
        if (problem.held_out) continue;
        std::vector<double> us = problem.configurations.at(each.id()).us;
        for (const Candidate& other : space->candidates()) {  // a shape it cannot run: the default
          if (us.empty()) us = problem.configurations.at(other.id()).us;
        }
        std::sort(us.begin(), us.end());
        ASSERT_EQ(us.size() % 2, 1u);
        sum += std::log(us[us.size() / 2]);
      }
      if (sum < least) least = sum, best = each.id();
    }
    const std::size_t level = autotuning::best_fixed_configuration(*space);
    EXPECT_EQ((*space)[level].id(), best) << space->kernel;
    const auto problem = space->problem.make_problem(space->problem.gpu_size, {});
    EXPECT_EQ(with_fallbacks(level, *space, *problem).front(), level);
    EXPECT_EQ(survivors(*space, device_info()).fixed, level);
  }
  const Space& gemm = autotuning::gemm_space();
  EXPECT_EQ(gemm[autotuning::best_fixed_configuration(gemm)].id(),
            "m=128 n=128 k=64 stages=6 cluster=1 ping_pong=0 group=8 share=0");
}

TEST_F(Committed, TuningTheProductPaysOnRoundsThatItWasNotChosenOn) {
  space = autotuning::gemm_space();
  const Recording* recording = committed(space);
  ASSERT_NE(recording, nullptr);
  EXPECT_GE(recording->problems.size(), 12u);
  EXPECT_EQ(std::ranges::count(recording->problems, true, &RecordedProblem::held_out), 3);
  const Verdicts verdicts = judge(space, *recording);
  EXPECT_GE(verdicts.tuned_over_fixed.mean, 1.05);
  EXPECT_GE(verdicts.tuned_over_fixed.worst, 0.98);
  EXPECT_GE(verdicts.held_out_over_fixed.mean, 1.05);
  EXPECT_GE(verdicts.held_out_over_fixed.worst, 0.98);
}

TEST_F(Committed, TheFigureOfTheSearchersIsThatOfTheRecordings) {
  const std::string file = source_path("chapters/11_autotuning/searchers.json");
  const auto figure = nlohmann::json::parse(contents(file));
  const auto recorded = recorded_spaces();
  ASSERT_EQ(figure.size(), recorded.size())
      << file << " is out of date: chapter-11 replay --json writes it";
  for (std::size_t i = 0; i < figure.size(); ++i) {
    const Space& its = *recorded[i];
    EXPECT_EQ(figure[i], nlohmann::json(searchers_json(its, *committed(its))))
        << file << " is out of date: chapter-11 replay --json writes it";
  }
}

// Without a recording the model chooses, nothing is an error, and one line says what is missing.
TEST_F(Committed, ASpaceThatIsNotRecordedYetSaysSoAndGoesByItsModel) {
  for (const Space* each : autotuning::all_spaces()) {
    space = *each;
    space.recordings = folder / "recorded";
    EXPECT_FALSE(find_recording(space, 90).has_value());
    const std::size_t fixed = autotuning::best_fixed_configuration(space);
    EXPECT_EQ(fixed, best_fixed(predicted_times(space, device_info()))) << space.kernel;
    if (device_info().is_simt) {  // a GPU would search
      const auto problem = space.problem.make_problem(space.problem.gpu_size, {});
      DevicePointers nowhere;
      for (const TensorSpec& spec : problem->tensors()) nowhere.by_name[spec.name] = nullptr;
      const Decision decision = decide(space, *problem, nowhere);
      EXPECT_EQ(decision.candidate, legal(space, *problem, device_info()).front());
      EXPECT_EQ(decision.why, "the default: this size was never recorded");
    }
    const std::string said = stdout_of([&] {
      EXPECT_EQ(run_command(space, {"replay", "--json", folder / "s.json"}), 0);
    });
    EXPECT_EQ(said.find("\n" + space.kernel + ": not recorded yet"), 0u) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << said;
    EXPECT_FALSE(fs::exists(folder / "s.json")) << "a figure of nothing";
  }
}

// What a run over three sizes would write.
TEST_F(Committed, TheProofIsReadFromTheLadder) {
  const auto level = [](const char* name, double us, double over_previous) {
    nlohmann::ordered_json json{{"name", name}, {"time_us", {{"median", us}}}};
    json["vs_previous"] = {{"ratio", over_previous}, {"low", over_previous}, {"high", 2}};
    json["vs_reference"] = {{"ratio", 0.5}, {"low", 0.5}, {"high", 0.5}};
    return json;
  };
  nlohmann::ordered_json document{{"runs", nlohmann::ordered_json::array()}};
  const auto add = [&](const Size& size, double over_fixed) {
    nlohmann::ordered_json run{{"ladder", "gemm"}, {"problem", {{"size", size}}}};
    run["levels"] = {level("untuned", 40, 1), level("best_fixed", 20, 2),
                     level("tuned", 10, over_fixed)};
    run["references"] = {{{"name", "cuBLAS"}, {"time_us", {{"median", 5}}}}};
    document["runs"].push_back(run);
  };
  add({512, 512, 512}, 2);
  EXPECT_TRUE(proofs(document, autotuning::all_spaces()).empty()) << "one size proves nothing";
  add({3072, 3072, 3072}, 0.5);
  document["runs"].push_back(document["runs"][0]);  // not timed: the SIMT backend
  for (auto& each : document["runs"][2]["levels"]) each["time_us"] = nullptr;
  document["runs"][2]["references"][0]["time_us"] = nullptr;
  const auto all = proofs(document, autotuning::all_spaces());
  ASSERT_EQ(all.size(), 1u);
  const Proof& proof = all[0];
  ASSERT_EQ(proof.rows.size(), 2u);
  EXPECT_FALSE(proof.rows[0].held_out);
  EXPECT_TRUE(proof.rows[1].held_out);
  const Proof::Row& row = proof.rows[0];
  EXPECT_EQ((Us{row.untuned, row.fixed, row.tuned, row.library}), (Us{40, 20, 10, 5}));
  EXPECT_NEAR(proof.over_fixed.mean, 1, 1e-9);
  EXPECT_NEAR(proof.over_fixed.worst, 0.5, 1e-9);
  EXPECT_NEAR(proof.over_untuned.mean, 4, 1e-9);
  EXPECT_NEAR(proof.over_untuned.worst, 4, 1e-9);
  EXPECT_NEAR(proof.over_library.mean, 0.5, 1e-9);
  EXPECT_FALSE(proof.kept());
  EXPECT_FALSE(proof.complete);
  print(proof);
  for (const auto& sizes : {autotuning::gemm_space().training, autotuning::gemm_space().held_out}) {
    for (const Size& size : sizes) add(size, 1.06);
  }
  EXPECT_TRUE(proofs(document, autotuning::all_spaces())[0].complete);
  // Planted: everywhere far over the best fixed configuration, and once slower than untuned.
  for (auto& run : document["runs"]) run["levels"][2]["vs_previous"]["ratio"] = 1.06;
  EXPECT_TRUE(proofs(document, autotuning::all_spaces())[0].kept());
  document["runs"].back()["levels"][0]["time_us"]["median"] = 9.7;
  const Proof slower = proofs(document, autotuning::all_spaces())[0];
  EXPECT_NEAR(slower.over_untuned.worst, 0.97, 1e-9);
  EXPECT_FALSE(slower.kept());
}

TEST(Proofs, AreTablesOfWhatWasTimed) {
  Proof proof;
  proof.ladder = "gemm", proof.library = "cuBLAS", proof.complete = true;
  proof.rows = {{{512, 512, 512}, false, 40, 20, 10, 5, {2, 1.9, 2.1}, {0.5, 0.4, 0.6}},
                {{64, 64, 64}, true, 4, 3, 3, 0, {1, 0.9, 1.1}, {}}};
  proof.over_fixed = {1.414, 1, 2}, proof.over_untuned = {2.309, 1.333, 2};
  proof.over_library = {0.5, 0.5, 1};
  const auto printed = [&] { return stdout_of([&] { print(proof); }); };
  const std::string table =
      "\ngemm: was it worth it? Timed after the searches, all of a size interleaved\n"
      "  size           untuned us best fixed us  tuned us  cuBLAS us   tuned over best fixed   "
      "tuned "
      "over cuBLAS\n"
      "  512x512x512         40.00         20.00     10.00       5.00   2.000 [1.900, 2.100]    "
      "0.500 "
      "[0.400, 0.600]\n"
      "  64x64x64 *           4.00          3.00      3.00       0.00   1.000 [0.900, 1.100]    \n"
      "  Geometric means over 2 sizes (above 1: tuned is faster): over the best fixed "
      "configuration "
      "1.414, worst 1.000; over untuned 2.309, worst 1.333; over cuBLAS 0.500\n";
  const std::string promise =
      "  Held to 1.05 over the best fixed configuration, and no size under 0.98 of it or of "
      "untuned: ";
  EXPECT_EQ(printed(), table + promise + "kept.\n");
  proof.over_untuned.worst = 0.97;
  EXPECT_CONTAINS(printed(), promise + "broken.\n");
  proof.complete = false;  // not all sizes
  EXPECT_LACKS(printed(), "Held");
  proof.complete = true, proof.ladder = "rope";  // promises nothing
  EXPECT_LACKS(printed(), "Held");
}

TEST(Proofs, APromiseIsKeptFromItsBoundsOn) {
  const auto kept = [](double over_fixed, double worst_over_fixed, double worst_over_untuned) {
    Proof proof;
    proof.over_fixed = {over_fixed, worst_over_fixed, 1};
    proof.over_untuned.worst = worst_over_untuned;
    return proof.kept();
  };
  EXPECT_TRUE(kept(1.05, 0.98, 0.98));
  EXPECT_FALSE(kept(1.049, 0.98, 0.98));
  EXPECT_FALSE(kept(1.05, 0.979, 0.98));
  EXPECT_FALSE(kept(1.05, 0.98, 0.979));
}

// --- cache ---------------------------------------------------------------------------------------

Entry entry_of(const std::string& shape, const std::string& id = "tile=32", double ratio = 1.2) {
  Entry entry;
  entry.key.kernel = "k", entry.key.shape = shape, entry.key.gpu = "a GPU";
  entry.default_id = "tile=16";
  entry.measured["tile=16"] = {10, 1, 1, 1, 25, ""};
  entry.measured[id] = {10 / ratio, ratio, ratio - 0.05, ratio + 0.05, 25, ""};
  return entry;
}

TEST_F(TuneCache, TheWinnerIsTheFastestThatMayWin) {
  Entry entry;
  entry.default_id = "d";
  entry.measured["d"] = {10, 1, 1, 1, 25, ""};
  const auto add = [&](const char* id, double ratio, double low) {
    entry.measured[id] = {10 / ratio, ratio, low, ratio, 25, ""};
  };
  EXPECT_EQ(entry.winner(), "d");
  add("b", 1.3, 1.2);
  EXPECT_EQ(entry.winner(), "b");
  add("a", 1.5, 1.0);  // within noise of the default, and in nobody's way
  EXPECT_EQ(entry.winner(), "b");
  add("c", 1.3, 1.25);  // as fast: the first of them
  EXPECT_EQ(entry.winner(), "b");
  entry.measured["a"] = {5, 2, 1.9, 2, 0, ""};  // only the search saw it
  EXPECT_EQ(entry.winner(), "b");
  entry.measured["a"] = {5, 2, 1.9, 2, 25, "wrong"};
  EXPECT_EQ(entry.winner(), "b");
  // The best fixed one gives way only to what is faster than it, by 2 % and beyond noise.
  entry.fixed_id = "c";
  EXPECT_EQ(entry.winner(), "c");
  add("b", 1.32, 1.31);
  EXPECT_EQ(entry.winner(), "c");
  add("b", 1.33, 1.31);
  EXPECT_EQ(entry.winner(), "b");
  add("b", 1.4, 1.29);
  EXPECT_EQ(entry.winner(), "c");
}

TEST_F(TuneCache, RemembersAndKeepsKeysApart) {
  const Cache cache(folder / "deep/er/tune.json");
  const Entry entry = entry_of("64");
  EXPECT_FALSE(cache.find(entry.key).has_value());
  cache.add(entry);
  ASSERT_TRUE(cache.find(entry.key).has_value());
  EXPECT_EQ(cache.find(entry.key)->winner(), "tile=32");
  const auto differs = [&](auto Key::*part, auto value) {
    Key key = entry.key;
    key.*part = value;
    EXPECT_FALSE(cache.find(key).has_value()) << key.digest();
  };
  for (const auto part : {&Key::kernel, &Key::tokens, &Key::space, &Key::shape, &Key::dtype,
                          &Key::layout, &Key::gpu, &Key::cc, &Key::driver, &Key::toolkit}) {
    differs(part, "x");
  }
  differs(&Key::sm_count, 1);
  differs(&Key::l2_bytes, 1);
}

// What a key is made from.
struct Plan {
  Space space = synthetic_space(2, 1);
  Size size = {4096, 200};
  Variant variant;
  DevicePointers at = pointers_at(256, 256);
  DeviceInfo device = device_info();
  Key key() const {
    return make_key(space, *space.problem.make_problem(size, variant), at, device);
  }
};

// Whatever changes the kernel or where it runs makes another key.
TEST_F(TuneCache, TheKeyKnowsTheSourceTheSpaceTheBuffersAndTheGpu) {
  enter_tokens({{"key/kernel.cuh", "1"}, {"key/moved.cuh", "1"}, {"key/edited.cuh", "2"}});
  Plan plan;
  plan.space.source = "key/kernel.cuh";
  plan.device.name = "a GPU", plan.device.driver = "570", plan.device.toolkit = "12.8";
  const Key key = plan.key();
  EXPECT_EQ(key.digest(), plan.key().digest());
  EXPECT_EQ(key.digest().size(), 16u);
  EXPECT_EQ(key.tokens, "1");
  EXPECT_EQ(key.kernel, "synthetic");
  EXPECT_EQ(key.shape, "4096/8 x 208/8");
  const std::string layout = plan.space.problem.layout;
  EXPECT_EQ(key.layout, layout + (layout.empty() ? "" : " ") + "in/8 out/8");
  const auto changed = [&](auto change) {
    Plan other = plan;
    change(other);
    return other.key();
  };
  std::set<std::string> digests = {key.digest()};
  const std::map<std::string, void (*)(Plan&)> changes = {
      {"an edited source", [](Plan& p) { p.space.source = "key/edited.cuh"; }},
      {"no source", [](Plan& p) { p.space.source = "key/gone.cuh"; }},
      {"another kernel", [](Plan& p) { p.space.kernel = "other"; }},
      {"a configuration more",
       [](Plan& p) {
         p.space.add(configuration({{"tile", 1}}, {}));
       }},
      {"another type", [](Plan& p) { p.space.problem.dtype = "bf16"; }},
      {"another layout", [](Plan& p) { p.space.problem.layout = "transposed"; }},
      {"another size", [](Plan& p) { p.size[0] = 8192; }},
      {"an odd pitch", [](Plan& p) { p.variant.extra_pitch = 1; }},
      {"an even pitch", [](Plan& p) { p.variant.extra_pitch = 2; }},
      {"in", [](Plan& p) { p.at = pointers_at(260, 256); }},
      {"out", [](Plan& p) { p.at = pointers_at(256, 260); }},
      {"another GPU", [](Plan& p) { p.device.name = "another GPU"; }},
      {"another major capability", [](Plan& p) { ++p.device.cc_major; }},
      {"another minor capability", [](Plan& p) { ++p.device.cc_minor; }},
      {"more SMs", [](Plan& p) { ++p.device.sm_count; }},
      {"a larger L2", [](Plan& p) { p.device.l2_bytes += 1; }},
      {"another driver", [](Plan& p) { p.device.driver = "580"; }},
      {"another toolkit", [](Plan& p) { p.device.toolkit = "13.0"; }}};
  for (const auto& [what, change] : changes) {
    EXPECT_TRUE(digests.insert(changed(change).digest()).second) << what;
  }
  // Where nothing is said about the bases, they are as good as aligned.
  EXPECT_EQ(changed([](Plan& p) { p.at = {}; }).digest(), key.digest());
  // Not the file's name: the same text elsewhere is the same kernel.
  EXPECT_EQ(changed([](Plan& p) { p.space.source = "key/moved.cuh"; }).digest(), key.digest());
  // Without a source, the key has the program itself, so that programs do not share a key.
  EXPECT_EQ(changed(changes.at("no source")).tokens.size(), 16u);
}

// Calls `work` with 0, 1 ... at once, each in a process of its own.
void in_processes(int count, const std::function<void(int)>& work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(error_of([&] { work(i); }).empty() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(TuneCache, TwoProcessesAtOnceLoseNothing) {
  const std::string file = folder / "tune.json";
  constexpr int kEach = 40;
  in_processes(2, [&](int process) {
    for (int i = 0; i < kEach; ++i) {
      Cache(file).add(entry_of(std::to_string(process) + "." + std::to_string(i)));
      Cache(file).add(entry_of("shared", "tile=" + std::to_string(100 * (process + 1) + i)));
    }
  });
  const auto entries = Cache(file).entries();
  EXPECT_EQ(entries.size(), 2u * kEach + 1);
  EXPECT_EQ(entries.at(entry_of("shared").key.digest()).measured.size(), 2u * kEach + 1);
}

TEST_F(TuneCache, ACorruptOrForeignFileIsSetAsideAndNeverTrusted) {
  const std::string file = folder / "tune.json";
  const Cache cache(file);
  cache.add(entry_of("64"));
  const std::string good = contents(file);
  std::string forged = good, swapped = good;
  forged.replace(forged.find("\"winner\": \"tile=32\""), 19, "\"winner\": \"tile=16\"");
  swapped.replace(swapped.find("a GPU"), 5, "b GPU");  // an entry under another key
  // What the rule before "under 2 % is the same" would have written: a winner at 1.009.
  std::string hardly = good, old = good;
  hardly.replace(hardly.find("\"low\": 1.15"), 11, "\"low\": 1.007");
  hardly.replace(hardly.find("\"ratio\": 1.2"), 12, "\"ratio\": 1.009");
  old.replace(old.find("tuning cache 4"), 14, "tuning cache 3");
  int n = 0;
  for (const std::string& bad : {good.substr(0, good.size() / 2), std::string("[1, 2]"),
                                 std::string("{\"schema\": \"another tool\"}"), std::string(),
                                 forged, swapped, hardly, old}) {
    std::ofstream(file) << bad;
    EXPECT_FALSE(cache.find(entry_of("64").key).has_value());
    ++n;
    EXPECT_FALSE(fs::exists(file));
    EXPECT_EQ(contents(file + ".corrupt-" + std::to_string(n)), bad);
  }
  cache.add(entry_of("64"));  // and life goes on
  EXPECT_EQ(contents(file), good);
  EXPECT_THROW(cache.merge(file + ".corrupt-1"), std::runtime_error);
}

TEST_F(TuneCache, AFolderThatCannotBeWrittenCostsTheCacheAndNothingElse) {
  const std::string file = folder / "c.json";
  std::ofstream(file) << "not a cache";
  fs::create_directory(file + ".lock");  // so that nobody gets the lock, root neither
  EXPECT_EQ(stderr_of([&] { EXPECT_FALSE(Cache(file).find(entry_of("1").key).has_value()); }),
            "autotune: cannot lock " + file + ".lock; going on without the cache\n");
  EXPECT_EQ(Cache(file).try_add(entry_of("1")), "cannot lock " + file + ".lock");
  EXPECT_EQ(contents(file), "not a cache");
  // A search whose result cannot be kept is still a search: its winner is launched.
  gpu.pointers = pointers_at(4, 0), gpu.searched = pointers_at(4, 4);
  const auto search = gpu.machine.search;
  gpu.machine.search = [&](const Space& a, const Size& b, const Variant& c, const TuneOptions& d,
                           const Cache&) { return search(a, b, c, d, Cache(folder / "other")); };
  const std::string said = stderr_of([&] { EXPECT_EQ(gpu.decided(Cache(file)).candidate, 2u); });
  EXPECT_CONTAINS(said, "what was found is not kept");
}

TEST_F(TuneCache, IsWrittenPieceByPieceAndAsAWholeOrNotAtAll) {
  const Cache whole(folder / "whole"), pieces(folder / "pieces");
  whole.add(entry_of("64"));
  bytes_per_write = 7, bytes_until_full = 1 << 20;  // an end to what never ends
  EXPECT_EQ(pieces.try_add(entry_of("64")), "");
  bytes_per_write = bytes_until_full = SIZE_MAX;
  const std::string before = contents(whole.file());
  EXPECT_EQ(contents(pieces.file()), before);
  for (const std::size_t room : {std::size_t{0}, before.size() - 1, before.size()}) {
    bytes_until_full = room;
    const std::string why = whole.try_add(entry_of("65"));
    bytes_until_full = SIZE_MAX;
    EXPECT_EQ(why, "cannot write " + whole.file());
    EXPECT_EQ(contents(whole.file()), before) << room;
  }
  for (const auto& each : fs::directory_iterator(folder / "")) {
    EXPECT_NE(each.path().extension(), ".tmp") << "what was begun is left";
  }
}

TEST_F(TuneCache, ShapesShareABucketOnlyWhereTheKernelWouldNotCare) {
  EXPECT_EQ(shape_bucket({4096, 4100, 7}), "4096/8 x 4608/4 x 7/1");
  EXPECT_EQ(shape_bucket({4095}), "4096/1");
  EXPECT_NE(shape_bucket({4095}), shape_bucket({4096}));  // other kernel paths
  EXPECT_EQ(shape_bucket({4088}), shape_bucket({4096}));
  EXPECT_NE(shape_bucket({120}), shape_bucket({128}));
}

TEST_F(Shards, CoverTheSpaceAndMergeToTheSameBytesInAnyOrder) {
  space = synthetic_space();
  const Recording recording = synthetic_recording(space);
  const Size size = {16, 128};
  constexpr int kShards = 3;
  // A GPU of its own for each: all measure the default, and no two find the same time. Recorded
  // before the fork, because a child cannot ask for the GPU that its parent has asked for.
  std::vector<Recording> recordings;
  for (unsigned i = 0; i < kShards; ++i) {
    recordings.push_back(synthetic_recording(space, 0.003, 10 + i));
  }
  in_processes(kShards, [&](int i) {
    TuneOptions options;
    options.shard = {i, kShards};
    options.finalists = 2;
    Report report = replay(space, recordings[static_cast<std::size_t>(i)], size, options);
    report.entry.key = entry_of("sharded").key;
    Cache(folder / (std::to_string(i) + ".json")).add(report.entry);
  });
  std::vector<int> order = {0, 1, 2};
  std::string first;
  do {
    const std::string out = folder / ("out" + std::to_string(order[0]) + std::to_string(order[1]));
    for (int i : order) Cache(out).merge(folder / (std::to_string(i) + ".json"));
    if (first.empty()) first = contents(out);
    EXPECT_EQ(contents(out), first) << "the order of merging shows";
    Cache(out).merge(folder / "0.json");
    EXPECT_EQ(contents(out), first) << "merging once more changed something";
    const Entry entry = Cache(out).entries().begin()->second;
    EXPECT_EQ(entry.measured.size(), space.candidates().size()) << "a configuration was lost";
    EXPECT_EQ(entry.fixed_id, space[best_fixed(recorded_times(space, recording))].id());
    EXPECT_LE(true_us(space, entry.winner(), size), kLeastGain * 1.005 * least_us(space, size));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Shards, AreIOfN) {
  EXPECT_EQ(parse_shard("0/1").count, 1);
  EXPECT_EQ(parse_shard("2/3").index, 2);
  EXPECT_EQ(parse_shard("3/4").index, 3);
  for (const char* bad : {"-1/2", "2/2", "3/3", "/2", "1", "1/", "a/b", "1/2/3", "0/0", ""}) {
    EXPECT_THROW(parse_shard(bad), std::invalid_argument) << bad;
  }
}

TEST_F(Tuner, TimesAsManyFinalistsAsItIsAskedToBesideTheDefaultAndTheBestFixed) {
  space = synthetic_space();
  const Recording recording = synthetic_recording(space);
  for (std::size_t finalists : {1, 2, 3}) {
    TuneOptions options;
    options.finalists = finalists;
    const Report report = replay(space, recording, {16, 128}, options);
    const auto timed = std::ranges::count(report.fates, Stage::finalist, &Fate::stage);
    const bool fixed_is_another = report.entry.fixed_id != report.entry.default_id;
    EXPECT_EQ(static_cast<std::size_t>(timed), 1 + fixed_is_another + finalists);
  }
}

TEST_F(CommandLine, MergesReplaysAndRefuses) {
  space = synthetic_space();
  write_recording(synthetic_recording(space), folder / "r.json");
  Cache(folder / "a.json").add(entry_of("1"));
  Cache(folder / "b.json").add(entry_of("2"));
  const auto run = [&](const std::vector<std::string>& words) { return run_command(space, words); };
  EXPECT_EQ(run({"merge", folder / "out.json", folder / "a.json", folder / "b.json"}), 0);
  EXPECT_EQ(Cache(folder / "out.json").entries().size(), 2u);
  EXPECT_EQ(run({"replay", "--recording", folder / "r.json", "--json", folder / "s.json"}), 0);
  EXPECT_CONTAINS(contents(folder / "s.json"), "median_looks");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& part) {
    const std::string line = stderr_of([&] { EXPECT_EQ(run(words), 2); });
    EXPECT_CONTAINS(line, part);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  };
  refused({"replay", "--kernel", "nobody"}, "replay: no kernel `nobody`; there are: synthetic");
  refused({"replay", "--kernel", "synthetic", "--recording", folder / "r.json"}, "--recording");
  refused({"replay", "--json", folder / "r.json/s.json"}, "replay: cannot write");
  refused({"tune", "--shard", "5/4"},
          "tune: a shard is i/n with 0 <= i < n, such as 0/4; got '5/4'");
  refused({"tune", "--colour", "blue"}, "--colour");
  refused({"merge", folder / "out.json"}, "merge: IN is required");
  refused({"record"}, "record: FOLDER is required");
  refused({"record", folder / "new", "nobody"}, "record: no kernel `nobody`; there are: synthetic");
  refused({"record", folder / "r.json"}, "record: cannot write");
  EXPECT_CONTAINS(stdout_of([&] { EXPECT_EQ(run({"tune", "--help"}), 0); }), "--shard");
  EXPECT_EQ(run({"merge", folder / "out.json", folder / "r.json"}), 1);
  EXPECT_EQ(run({"--list"}), std::nullopt);
}

}  // namespace
}  // namespace tune
}  // namespace cookbook
