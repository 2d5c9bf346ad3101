// SPDX-License-Identifier: MIT
// The autotuner: every pitfall is planted and must be caught; searchers, cache and shards run on
// spaces made up here.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

#include "chapters/11_autotuning/rmsnorm.cuh"
#include "chapters/11_autotuning/rope.cuh"
#include "chapters/11_autotuning/spaces.hpp"
#include "common/tune/cli.hpp"
#include "common/tune/levels.hpp"
#include "tests/planted/reverse.hpp"

namespace cookbook {
Chapter chapter_11_entry();

namespace tune {
namespace {

using planted::Bug;
namespace fs = std::filesystem;

// A folder that is gone afterwards.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tune_test.XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

std::string contents(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
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
      Candidate each;
      each.parameters = {{"tile", 16 << t}, {"stages", 2 + s}};
      each.level = each.search = space.problem.levels.at(0);
      space.add(std::move(each));
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

Recording synthetic_recording(const Space& space, double noise = 0.003) {
  Recording recording;
  recording.kernel = space.kernel, recording.date = "none", recording.commit = "none";
  recording.device = device_info();
  std::mt19937 random(3);
  std::normal_distribution<double> normal(1.0, noise);
  for (const Candidate& each : space.candidates())
    recording.parameters[each.id()] = each.parameters;
  auto add = [&](const Size& size, bool held_out) {
    RecordedProblem problem;
    problem.size = size, problem.held_out = held_out;
    for (const Candidate& each : space.candidates()) {
      Samples& samples = problem.configurations[each.id()];
      for (int r = 0; r < 30; ++r) {
        samples.us.push_back(synthetic_us(each.parameters, size) * normal(random));
      }
    }
    recording.problems.push_back(problem);
  };
  for (const Size& size : space.training) add(size, false);
  for (const Size& size : space.held_out) add(size, true);
  return recording;
}

std::vector<std::string> ids_of(const Space& space) {
  std::vector<std::string> ids;
  for (const Candidate& each : space.candidates()) ids.push_back(each.id());
  return ids;
}

Survivors everyone(const Space& space) {
  Survivors all{std::vector<std::size_t>(space.candidates().size()), "all"};
  std::iota(all.indices.begin(), all.indices.end(), 0);
  return all;
}

Report replay(const Space& space, const Recording& recording, const Size& size,
              const TuneOptions& options = {}) {
  ReplayTimer timer(*recording.find(size), ids_of(space));
  const auto problem = space.problem.make_problem(size, {});
  return tune(space, size, *problem, recording.device, everyone(space), timer, nullptr, options);
}

std::size_t truly_best(const Space& space, const Size& size) {
  std::size_t best = 0;
  for (std::size_t c = 0; c < space.candidates().size(); ++c) {
    if (synthetic_us(space[c].parameters, size) < synthetic_us(space[best].parameters, size))
      best = c;
  }
  return best;
}

// --- spaces --------------------------------------------------------------------------------------

// Too large for a block: its kernel cannot be compiled, and must not be.
template <int kKilobytes>
struct Hungry {
  static Parameters parameters() { return {{"kilobytes", kKilobytes}}; }
  static constexpr bool kLegal = kKilobytes * 1024 <= kSharedMemoryBytes;
  static std::string refusal() { return too_much_shared_memory(kKilobytes * 1024); }
};
template <class C>
struct HungryLevel : planted::Reverse<Bug::none> {
  static_assert(C::kLegal, "an illegal configuration was instantiated");
};

TEST(Space, AnIllegalConfigurationIsListedWithItsReasonAndNeverCompiled) {
  Space space = synthetic_space(1, 1);
  space.add(candidate<Hungry<100>, HungryLevel>());
  space.add(candidate<Hungry<240>, HungryLevel>());
  const auto problem = space.problem.make_problem({4, 64}, {});
  const auto fates = legality(space, *problem, device_info());
  ASSERT_EQ(fates.size(), 3u);
  EXPECT_EQ(fates[1].stage, Stage::timed);
  EXPECT_EQ(fates[2].stage, Stage::refused);
  EXPECT_EQ(fates[2].reason, "shared memory 245,760 > 232,448 bytes");
}

TEST(Space, ACompileBlowUpIsRefused) {
  Space space = synthetic_space(6, 5);  // 30: exactly the budget
  static_assert(within_compile_budget(30) && !within_compile_budget(31));
  Candidate more;
  more.parameters = {{"tile", 1}};
  try {
    space.add(more);
    FAIL() << "31 configurations were accepted";
  } catch (const SpaceError& error) {
    EXPECT_NE(std::string(error.what()).find("more than 30"), std::string::npos) << error.what();
  }
  Space twice = synthetic_space(1, 1);
  EXPECT_THROW(twice.add(twice[0]), SpaceError);
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
  try {
    decide(space, *problem, {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("1,022,976 > 232,448"), std::string::npos)
        << error.what();
  }
  RecordedProblem nothing;
  ReplayTimer timer(nothing, ids_of(space));
  const Report report =
      tune(space, {4, 64}, *problem, device_info(), everyone(space), timer, nullptr, {});
  EXPECT_NE(report.problem.find("no configuration"), std::string::npos);
}

TEST(Space, TheChaptersSpacesKeepTheirBudgetAndTheirDefault) {
  DeviceInfo device = device_info();
  device.cc_major = 9, device.cc_minor = 0, device.sm_count = 132, device.l2_bytes = 50 << 20;
  device.smem_per_block_bytes = kSharedMemoryBytes;
  for (const Space* space : autotuning::all_spaces()) {
    EXPECT_LE(space->candidates().size(), kMostConfigurations) << space->kernel;
    const Survivors kept = survivors(*space, device);
    EXPECT_LE(kept.indices.size(), kMostSurvivors) << space->kernel;
    EXPECT_GE(kept.indices.size(), 2u) << space->kernel;
    const auto problem = space->problem.make_problem(space->problem.gpu_size, {});
    EXPECT_EQ(kept.indices.front(), legal(*space, *problem, device).front()) << space->kernel;
    const auto fates = legality(*space, *problem, device);
    EXPECT_TRUE(std::any_of(fates.begin(), fates.end(),
                            [](const Fate& fate) { return fate.stage == Stage::refused; }))
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
          if (!each.refused.empty()) continue;
          const CheckResult check = check_level(split ? each.search : each.level, instance, 1);
          EXPECT_NE(check.status, CheckResult::Status::mismatch)
              << space->kernel << " " << each.id() << " at " << shape_bucket(size) << ": "
              << check.reason;
        }
      }
    }
  }
}

// --- verification --------------------------------------------------------------------------------

// Configurations that are wrong or do not launch, and would be the fastest.
TEST(Tuner, AFastConfigurationThatIsWrongIsListedAndNotChosen) {
  Space space = synthetic_space(0, 0);
  auto add = [&](int bug, LevelEntry level) {
    Candidate each;
    each.parameters = {{"bug", bug}};
    each.level = each.search = std::move(level);
    space.add(std::move(each));
  };
  add(0, make_level<planted::Reverse<Bug::none>>());
  add(1, make_level<planted::Reverse<Bug::unwritten_tail>>());
  add(2, make_level<planted::Reverse<Bug::too_many_threads>>());
  add(3, make_level<planted::Reverse<Bug::nan_produced>>());
  const Size size = {3, 50};
  RecordedProblem fast;
  for (const Candidate& each : space.candidates()) {
    fast.configurations[each.id()].us.assign(10, 10.0 - value_of(each.parameters, "bug"));
  }
  Instance instance(space.problem, size, InputKind::normal, 1);
  DeviceVerifier verifier(space, instance, size);
  ReplayTimer timer(fast, ids_of(space));
  const Report report =
      tune(space, size, instance.problem(), device_info(), everyone(space), timer, &verifier, {});
  EXPECT_EQ(report.entry.winner(), "bug=0");
  for (int bug : {1, 2, 3}) {
    EXPECT_EQ(report.fates[bug].stage, Stage::failed) << bug;
    EXPECT_FALSE(report.fates[bug].reason.empty());
  }
  EXPECT_NE(report.fates[1].reason.find("never written"), std::string::npos)
      << report.fates[1].reason;
  // And without the verifier the tuner would have fallen for it: that is what it is there for.
  ReplayTimer again(fast, ids_of(space));
  EXPECT_EQ(
      tune(space, size, instance.problem(), device_info(), everyone(space), again, nullptr, {})
          .entry.winner(),
      "bug=3");
}

// A tolerance for fp32 on an output in bf16: right kernels "fail".
struct TightProblem : rmsnorm::Problem {
  static TightProblem make(const Size& size, const Variant& variant) {
    return {rmsnorm::Problem::make(size, variant)};
  }
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    rmsnorm::Problem::reference_row(tensors, output, row, value, bound);
    for (std::int64_t c = 0; c < shape.cols; ++c) bound[c] = 1e-6 * std::fabs(value[c]);
  }
};

TEST(Tuner, AToleranceTooTightForTheTypeIsNamedAsTheCause) {
  Space space = synthetic_space(0, 0);
  space.kernel = "tight";
  space.problem = ladder_over<TightProblem>("tight", "", {"rows", "cols"});
  space.problem.check_size = {4, 64};
  space.add(candidate<rmsnorm::Config<128, 8>, rmsnorm::Tuned>());
  space.add(candidate<rmsnorm::Config<64, 16>, rmsnorm::Tuned>());
  Instance instance(space.problem, {4, 64}, InputKind::normal, 1);
  DeviceVerifier verifier(space, instance, {4, 64});
  RecordedProblem none;
  ReplayTimer timer(none, ids_of(space));
  const Report report = tune(space, {4, 64}, instance.problem(), device_info(), everyone(space),
                             timer, &verifier, {});
  EXPECT_NE(report.problem.find("too tight for the type"), std::string::npos) << report.problem;
  const Instance fine(autotuning::rmsnorm_space().problem, {4, 64}, InputKind::normal, 1);
  EXPECT_EQ(tolerance_too_tight(fine.problem(), fine.tensors()), "");
}

// A large problem is checked small, and its winner once more at full size.
TEST(Tuner, AWinnerThatIsWrongOnlyAtFullSizeIsStruckOut) {
  EXPECT_EQ(small_size({4095, 8192, 640}), (Size{512 + 127, 512, 640}));
  Space space = synthetic_space(0, 0);
  auto add = [&](int bug, LevelEntry level) {
    Candidate each;
    each.parameters = {{"bug", bug}};
    each.level = each.search = std::move(level);
    space.add(std::move(each));
  };
  add(0, make_level<planted::Reverse<Bug::none>>());
  add(1, make_level<planted::Reverse<Bug::wrong_at_one_size>>());
  class AtFullSizeOnly : public Verifier {
   public:
    AtFullSizeOnly(const Space& space, Instance& full) : space_(space), full_(full) {}
    std::string check(std::size_t) override { return ""; }
    std::string confirm(std::size_t candidate) override {
      return check_level(space_[candidate].search, full_, 1).reason;
    }

   private:
    const Space& space_;
    Instance& full_;
  };
  const Size size = {3, 33};
  RecordedProblem times;
  times.configurations["bug=0"].us.assign(10, 10);
  times.configurations["bug=1"].us.assign(10, 5);
  Instance instance(space.problem, size, InputKind::normal, 1);
  AtFullSizeOnly verifier(space, instance);
  ReplayTimer timer(times, ids_of(space));
  const Report report =
      tune(space, size, instance.problem(), device_info(), everyone(space), timer, &verifier, {});
  EXPECT_EQ(report.entry.winner(), "bug=0");
  EXPECT_EQ(report.fates[1].stage, Stage::failed);
}

// Runs what it is asked to time, as a GPU timer does, and makes the times up.
class RunningTimer : public Timer {
 public:
  RunningTimer(const Space& space, Instance& instance, bool searched)
      : space_(space), instance_(instance), searched_(searched) {}
  void warm_up(std::size_t candidate) override { time({candidate}, 3); }
  std::vector<Samples> time(const std::vector<std::size_t>& candidates, int rounds) override {
    std::vector<Samples> all(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& each = space_[candidates[i]];
      const auto run =
          (searched_ ? each.search : each.level).prepare(instance_.problem(), instance_.pointers());
      for (int r = 0; r < rounds; ++r) run(Stream{});
      all[i].us.assign(static_cast<std::size_t>(rounds), 10.0 + double(candidates[i]));
    }
    synchronize();
    return all;
  }

 private:
  const Space& space_;
  Instance& instance_;
  bool searched_;
};

TEST(Tuner, AnInPlaceKernelIsSearchedOnSplitBuffers) {
  const Space& space = autotuning::rope_space();
  const Size size = {5, 2, 32};
  const auto problem = space.problem.make_problem(size, {});
  TuneOptions few;
  few.search_rounds = few.final_rounds = 2;
  // Without it: a search on the user's buffer turns x again and again.
  Instance in_place(space.problem, size, InputKind::normal, 1);
  const std::uint64_t before = in_place.output_hash();
  RunningTimer naive(space, in_place, false);
  tune(space, size, *problem, device_info(), everyone(space), naive, nullptr, few);
  EXPECT_NE(in_place.output_hash(), before);
  EXPECT_FALSE(in_place.compare().ok) << "many turns look like one";
  // With it: `in` is what it was, and `out` is right after any number of runs.
  ASSERT_TRUE(space.search_problem.has_value());
  Instance split(space.searched(), size, InputKind::normal, 1);
  RunningTimer careful(space, split, true);
  tune(space, size, *problem, device_info(), everyone(space), careful, nullptr, few);
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

// A GPU whose clocks need `kCold` runs to rise: until then everything takes twice as long.
class ColdTimer : public ReplayTimer {
 public:
  using ReplayTimer::ReplayTimer;
  void warm_up(std::size_t) override { runs_ += kCold; }
  std::vector<Samples> time(const std::vector<std::size_t>& candidates, int rounds) override {
    auto all = ReplayTimer::time(candidates, rounds);
    for (int r = 0; r < rounds; ++r) {
      for (Samples& samples : all) {
        if (runs_++ < kCold) samples.us[static_cast<std::size_t>(r)] *= 2;
      }
    }
    return all;
  }

 private:
  static constexpr int kCold = 40;
  int runs_ = 0;
};

TEST(Tuner, TheFirstConfigurationIsNotTimedCold) {
  Space space = synthetic_space(4, 1);
  RecordedProblem problem;
  problem.size = {4, 64};
  for (std::size_t c = 0; c < 4; ++c) {  // the first, the default, is the fastest by 5 %
    problem.configurations[space[c].id()].us.assign(10, c == 0 ? 100.0 : 105.0);
  }
  const auto any = space.problem.make_problem(problem.size, {});
  // Planted: one configuration after another, on clocks that are still rising. Of two that are
  // timed, the one that happens to come first looks slower, though it is the faster one.
  ColdTimer naive(problem, ids_of(space));
  naive.time({3}, 30);
  const double first = median(naive.time({0}, 10)[0].us);
  const double second = median(naive.time({1}, 10)[0].us);
  EXPECT_GT(first, second) << "the planted cold start does not show";
  ColdTimer timer(problem, ids_of(space));
  const Report report =
      tune(space, problem.size, *any, device_info(), everyone(space), timer, nullptr, {});
  EXPECT_EQ(report.entry.winner(), space[0].id());
}

TEST(Tuner, RefusesToTimeUnderAProfiler) {
  auto nothing = [](const char*) -> const char* { return nullptr; };
  EXPECT_EQ(why_not_time(nothing, "7f00 /lib/libc.so.6"), "");
  for (const char* name : {"CUDA_INJECTION64_PATH", "NV_COMPUTE_PROFILER_PERFWORKS_DIR",
                           "NV_NSIGHT_INJECTION_TRANSPORT_TYPE"}) {
    const auto planted = [name](const char* asked) -> const char* {
      return std::string(asked) == name ? "x" : nullptr;
    };
    EXPECT_NE(why_not_time(planted, "").find(name), std::string::npos);
  }
  EXPECT_NE(why_not_time(nothing, "7f00 /opt/nvidia/nsight-compute/libcuda-injection.so"), "");
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_NE(why_not_time(), "");
  Folder folder;
  EXPECT_THROW(tune_on_device(autotuning::rmsnorm_space(), {64, 64}, {}, {}, Cache(folder / "c")),
               std::runtime_error);
  EXPECT_FALSE(fs::exists(folder / "c"));
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST(Tuner, TheHotPathNeverDecidesAgain) {
  setenv("COOKBOOK_AUTOTUNE", "read", 1);
  Folder folder;
  setenv("XDG_CACHE_HOME", (folder / "x").c_str(), 1);
  static const Space& space = autotuning::rmsnorm_space();
  Instance instance(space.problem, {4, 64}, InputKind::normal, 1);
  const Chapter chapter = chapter_11_entry();
  for (const Ladder& ladder : chapter.ladders) {
    if (ladder.name != "rmsnorm") continue;
    EXPECT_EQ(decisions_on_hot_path(
                  *std::find_if(ladder.levels.begin(), ladder.levels.end(),
                                [](const LevelEntry& level) { return level.name == "tuned"; }),
                  instance, 100),
              0u);
  }
  // Planted: a level that looks the configuration up at every call.
  LevelEntry rebuilds;
  rebuilds.prepare = [](const AnyProblem& problem, const DevicePointers& at) {
    return std::function<void(Stream)>([&problem, at](Stream stream) {
      space[decide(space, problem, at).candidate].level.prepare(problem, at)(stream);
    });
  };
  EXPECT_EQ(decisions_on_hot_path(rebuilds, instance, 10), 10u);
  unsetenv("COOKBOOK_AUTOTUNE");
  unsetenv("XDG_CACHE_HOME");
}

TEST(Tuner, WithinNoiseTheDefaultStays) {
  Space space = synthetic_space(4, 1);
  std::mt19937 random(5);
  std::normal_distribution<double> noise(100, 2);
  for (int trial = 0; trial < 20; ++trial) {
    RecordedProblem problem;
    problem.size = {4, 64};
    for (const Candidate& each : space.candidates()) {
      for (int r = 0; r < 60; ++r) problem.configurations[each.id()].us.push_back(noise(random));
    }
    ReplayTimer timer(problem, ids_of(space));
    const auto any = space.problem.make_problem(problem.size, {});
    const Report report =
        tune(space, problem.size, *any, device_info(), everyone(space), timer, nullptr, {});
    const Measured& winner = report.entry.measured.at(report.entry.winner());
    // Now and then an interval excludes 1 by chance; then what is won is tiny and nothing is lost.
    EXPECT_LT(winner.ratio, 1.03);
    EXPECT_GE(winner.ratio, 1.0);
  }
}

TEST(Tuner, FindsTheBestOfEveryRecordedShapeAndIsNeverSlowerThanTheDefault) {
  const Space space = synthetic_space();
  const Recording recording = synthetic_recording(space);
  for (const RecordedProblem& problem : recording.problems) {
    const Report report = replay(space, recording, problem.size);
    const auto winner = static_cast<std::size_t>(space.find(report.entry.winner()));
    const double best =
        synthetic_us(space[truly_best(space, problem.size)].parameters, problem.size);
    EXPECT_LE(synthetic_us(space[winner].parameters, problem.size), 1.01 * best);
    EXPECT_LE(synthetic_us(space[winner].parameters, problem.size),
              1.01 * synthetic_us(space[0].parameters, problem.size));
    print(report, space);
  }
  const Verdicts verdicts = judge(space, recording);
  EXPECT_GE(verdicts.worst_over_fixed, 0.98);
  EXPECT_GE(verdicts.worst_held_out, 0.98);
  EXPECT_GT(verdicts.tuned_over_fixed, 1.02);
  print_replay(space, recording);
}

TEST(Tuner, TheSwitch) {
  for (const auto& [text, mode] : {std::pair{"off", Mode::off}, std::pair{"read", Mode::read},
                                   std::pair{"tune", Mode::tune}}) {
    setenv("COOKBOOK_AUTOTUNE", text, 1);
    EXPECT_EQ(mode_from_environment(), mode);
  }
  setenv("COOKBOOK_AUTOTUNE", "maybe", 1);
  EXPECT_THROW(mode_from_environment(), std::invalid_argument);
  unsetenv("COOKBOOK_AUTOTUNE");
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
    EXPECT_LE(score.worst_looks, 5 * 24) << score.name;
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
      ReplayTimer timer(problem, ids_of(space));
      const Search search = searcher.run(arena, timer);
      EXPECT_TRUE(search.found) << searcher.name;
      EXPECT_NE(search.best, 3u);
      EXPECT_LE(search.steps.back().looks, looks);
    }
  }
}

TEST(Recordings, SurviveTheirFileAndBadOnesAreNamed) {
  Folder folder;
  Space space = synthetic_space(3, 2);
  Recording recording = synthetic_recording(space);
  recording.problems[0].configurations[space[1].id()] = {{}, "too \"large\""};
  recording.problems[0].libraries["library"].us = {1.5, std::nan(""), 2.5};
  write_recording(recording, folder / "r.json");
  const Recording again = read_recording(folder / "r.json");
  EXPECT_EQ(again.problems.size(), recording.problems.size());
  EXPECT_EQ(again.problems[0].configurations.at(space[1].id()).failure, "too \"large\"");
  EXPECT_TRUE(std::isnan(again.problems[0].libraries.at("library").us[1]));
  EXPECT_NEAR(again.problems[1].configurations.at(space[2].id()).us[7],
              recording.problems[1].configurations.at(space[2].id()).us[7], 1e-3);
  EXPECT_EQ(again.parameters.at(space[2].id()).size(), 2u);
  space.recordings = folder / "";
  std::ofstream(folder / "a.json") << "{\"schema\": 7}";
  std::ofstream(folder / "b.json") << "not json";
  ASSERT_TRUE(find_recording(space, recording.device.cc()).has_value());
  EXPECT_FALSE(find_recording(space, 12).has_value());
  EXPECT_THROW(read_recording(folder / "a.json"), std::runtime_error);
}

TEST(Recordings, TheSpaceShrinksToWhatEverWins) {
  const Space space = synthetic_space();
  const TimeMatrix times = recorded_times(space, synthetic_recording(space));
  const auto kept = shrink(times, kMostSurvivors);
  EXPECT_LE(kept.size(), kMostSurvivors);
  EXPECT_EQ(kept.front(), 0u) << "the default went missing";
  EXPECT_NE(std::find(kept.begin(), kept.end(), best_fixed(times)), kept.end());
  for (std::size_t s = 0; s < times.sizes.size(); ++s) {
    double best = 1e30, best_kept = 1e30;
    for (const auto& row : times.us) best = std::min(best, row[s]);
    for (std::size_t c : kept) best_kept = std::min(best_kept, times.us[c][s]);
    EXPECT_LE(best_kept, 1.01 * best);
  }
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

TEST(TuneCache, RemembersAndKeepsKeysApart) {
  Folder folder;
  const Cache cache(folder / "deep/er/tune.json");
  const Entry entry = entry_of("64");
  EXPECT_FALSE(cache.find(entry.key).has_value());
  cache.add(entry);
  ASSERT_TRUE(cache.find(entry.key).has_value());
  EXPECT_EQ(cache.find(entry.key)->winner(), "tile=32");
  auto differs = [&](auto change) {
    Key key = entry.key;
    change(key);
    EXPECT_FALSE(cache.find(key).has_value());
  };
  differs([](Key& k) { k.kernel = "x"; });
  differs([](Key& k) { k.source_sha256 = "x"; });
  differs([](Key& k) { k.space_sha256 = "x"; });
  differs([](Key& k) { k.shape = "x"; });
  differs([](Key& k) { k.dtype = "x"; });
  differs([](Key& k) { k.layout = "x"; });
  differs([](Key& k) { k.gpu = "x"; });
  differs([](Key& k) { k.cc = "x"; });
  differs([](Key& k) { k.sm_count = 1; });
  differs([](Key& k) { k.l2_bytes = 1; });
  differs([](Key& k) { k.driver = "x"; });
  differs([](Key& k) { k.toolkit = "x"; });
}

TEST(TuneCache, TwoProcessesAtOnceLoseNothing) {
  Folder folder;
  const std::string file = folder / "tune.json";
  constexpr int kEach = 40;
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      int status = 0;
      try {
        for (int i = 0; i < kEach; ++i) {
          Cache(file).add(entry_of(std::to_string(process) + "." + std::to_string(i)));
          Cache(file).add(entry_of("shared", "tile=" + std::to_string(100 * (process + 1) + i)));
        }
      } catch (...) {
        status = 1;
      }
      _exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto entries = Cache(file).entries();
  EXPECT_EQ(entries.size(), 2u * kEach + 1);
  EXPECT_EQ(entries.at(entry_of("shared").key.digest()).measured.size(), 2u * kEach + 1);
}

TEST(TuneCache, ACorruptOrForeignFileIsSetAsideAndNeverTrusted) {
  Folder folder;
  const std::string file = folder / "tune.json";
  const Cache cache(file);
  cache.add(entry_of("64"));
  const std::string good = contents(file);
  std::string forged = good, swapped = good;
  forged.replace(forged.find("\"winner\": \"tile=32\""), 19, "\"winner\": \"tile=16\"");
  swapped.replace(swapped.find("a GPU"), 5, "b GPU");  // an entry under another key
  int n = 0;
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), std::string("[1, 2]"),
        std::string("{\"schema\": \"another tool\"}"), std::string(), forged, swapped}) {
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

TEST(TuneCache, ShapesShareABucketOnlyWhereTheKernelWouldNotCare) {
  EXPECT_EQ(shape_bucket({4096, 4100, 7}), "4096/8 x 4608/4 x 7/1");
  EXPECT_EQ(shape_bucket({4095}), "4096/1");
  EXPECT_NE(shape_bucket({4095}), shape_bucket({4096}));  // other kernel paths
  EXPECT_EQ(shape_bucket({4088}), shape_bucket({4096}));
  EXPECT_NE(shape_bucket({120}), shape_bucket({128}));
}

TEST(Shards, CoverTheSpaceAndMergeToTheSameBytesInAnyOrder) {
  Folder folder;
  const Space space = synthetic_space();
  const Recording recording = synthetic_recording(space);
  const Size size = {16, 128};
  std::vector<pid_t> children;
  constexpr int kShards = 3;
  for (int i = 0; i < kShards; ++i) {  // each in a process of its own
    const pid_t child = fork();
    if (child == 0) {
      TuneOptions options;
      options.shard = {i, kShards};
      options.finalists = 2;
      Report report = replay(space, recording, size, options);
      report.entry.key = entry_of("sharded").key;
      Cache(folder / (std::to_string(i) + ".json")).add(report.entry);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  std::vector<int> order = {0, 1, 2};
  std::string first;
  do {
    const std::string out = folder / ("out" + std::to_string(order[0]) + std::to_string(order[1]));
    for (int i : order) Cache(out).merge(folder / (std::to_string(i) + ".json"));
    Cache(out).merge(folder / "0.json");  // once more changes nothing
    if (first.empty()) first = contents(out);
    EXPECT_EQ(contents(out), first);
    const Entry entry = Cache(out).entries().begin()->second;
    EXPECT_EQ(entry.measured.size(), space.candidates().size()) << "a configuration was lost";
    const auto winner = static_cast<std::size_t>(space.find(entry.winner()));
    EXPECT_LE(synthetic_us(space[winner].parameters, size),
              1.01 * synthetic_us(space[truly_best(space, size)].parameters, size));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_THROW(parse_shard("3/3"), std::invalid_argument);
  EXPECT_THROW(parse_shard("1"), std::invalid_argument);
  EXPECT_THROW(parse_shard("a/b"), std::invalid_argument);
  EXPECT_EQ(parse_shard("2/3").index, 2);
}

TEST(CommandLine, MergesReplaysAndRefuses) {
  Folder folder;
  Space space = synthetic_space();
  write_recording(synthetic_recording(space), folder / "r.json");
  Cache(folder / "a.json").add(entry_of("1"));
  Cache(folder / "b.json").add(entry_of("2"));
  auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "chapter-11");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return command({&space}, static_cast<int>(argv.size()), argv.data());
  };
  EXPECT_EQ(run({"merge", folder / "out.json", folder / "a.json", folder / "b.json"}), 0);
  EXPECT_EQ(Cache(folder / "out.json").entries().size(), 2u);
  EXPECT_EQ(run({"replay", "--recording", folder / "r.json", "--json", folder / "s.json"}), 0);
  EXPECT_NE(contents(folder / "s.json").find("median_looks"), std::string::npos);
  EXPECT_EQ(run({"replay", "--kernel", "nobody"}), 2);
  EXPECT_EQ(run({"tune", "--shard", "5/4"}), 2);
  EXPECT_EQ(run({"tune", "--colour", "blue"}), 2);
  EXPECT_EQ(run({"merge", folder / "out.json"}), 2);
  EXPECT_EQ(run({"merge", folder / "out.json", folder / "r.json"}), 1);
  EXPECT_EQ(run({"--list"}), std::nullopt);
}

}  // namespace
}  // namespace tune
}  // namespace cookbook
