// SPDX-License-Identifier: MIT
// The sampler of common/bench as it is compiled for a GPU, on a simulated GPU: every stream is a
// clock that launches advance, and the L2 records whose lines it holds.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "benchmark/benchmark.h"
#include "common/bench/bench.hpp"
#include "common/bench/flush.hpp"
#include "common/bench/nvml.hpp"
#include "tests/stand_ins/nvml.hpp"

struct FakeEvent {
  double at_us = -1;  // of its stream's clock; -1: not recorded
  bool waited_for = false;
};

namespace {

// What the host asked of the GPU, in order: "flush", "start", "stop", a contender's name.
struct Gpu {
  std::map<cudaStream_t, double> clock_us;
  std::vector<std::string> log;
  std::string l2;  // whose lines it holds
  cudaError_t last_error = cudaSuccess;
  int events = 0;

  void run(const std::string& name, cookbook::Stream stream, double us) {
    log.push_back(name);
    clock_us[stream.handle] += us;
    l2 = name;
  }
};
Gpu gpu;

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "launch failure" : "not ready";
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new FakeEvent;
  ++gpu.events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  --gpu.events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  gpu.log.push_back("record");
  event->at_us = gpu.clock_us[stream];
  event->waited_for = false;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event->waited_for = true;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
  if (!stop->waited_for || start->at_us < 0) return cudaErrorNotReady;
  *ms = static_cast<float>((stop->at_us - start->at_us) * 1e-3);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(gpu.last_error, cudaSuccess); }
cudaError_t cudaGetDevice(int* device) {
  *device = 3;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<std::size_t>(bytes), "bus-%d", device);
  return cudaSuccess;
}

namespace cookbook {

void flush_l2(Stream stream) { gpu.run("flush", stream, 30); }

namespace {

FakeNvml& nvml() {
  static auto* found =
      static_cast<FakeNvml*>(dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "fake_nvml"));
  return *found;
}

// A kernel that takes `cold` microseconds, `hot` when the L2 holds its own data, and `first` (the
// module is loaded) at its first launch.
struct Kernel {
  std::string name;
  double cold = 100, hot = 50, first = 0;
  int launches = 0;
  std::function<double(int)> noise = {};  // of launch n: added
  Contender contender() {
    return {name, [this](Stream stream) {
              double us = gpu.l2 == name ? hot : cold;
              if (noise) us += noise(launches);
              if (launches++ == 0) us += first;
              gpu.run(name, stream, us);
            }};
  }
};

class Bench : public testing::Test {
 protected:
  void SetUp() override {
    gpu = {};
    nvml() = {};
  }
  void TearDown() override { EXPECT_EQ(gpu.events, 0) << "events are left"; }

  // The launches between the first and the second record of sample n, and what came before it since
  // the sample before.
  struct Sample {
    std::vector<std::string> before, timed;
  };
  static std::vector<Sample> samples() {
    std::vector<Sample> all(1);
    bool timing = false;
    for (const std::string& entry : gpu.log) {
      if (entry == "record") {
        if (timing) all.emplace_back();
        timing = !timing;
        continue;
      }
      (timing ? all.back().timed : all.back().before).push_back(entry);
    }
    all.pop_back();
    return all;
  }
};

using Names = std::vector<std::string>;

BenchOptions rounds(int least, int most, bool hot = false) {
  BenchOptions options;
  options.min_rounds = least, options.max_rounds = most;
  options.hot = hot;
  return options;
}

std::vector<Contender> contenders_of(std::vector<Kernel>& kernels) {
  std::vector<Contender> contenders;
  for (Kernel& kernel : kernels) contenders.push_back(kernel.contender());
  return contenders;
}

TEST_F(Bench, AColdSampleIsOneLaunchAfterAFlush) {
  Kernel a{"a", 100, 50, 1e6};
  const Measurement m = measure({a.contender()}, rounds(9, 9), nullptr).at(0);
  EXPECT_EQ(m.error, "");
  EXPECT_NEAR(m.cold.median, 100, 1e-3);
  EXPECT_NEAR(m.cold.q1, 100, 1e-3);
  EXPECT_NEAR(m.cold.q3, 100, 1e-3);
  EXPECT_EQ(m.cold.n, 9);
  EXPECT_EQ(m.hot.n, 0) << "not asked for";
  ASSERT_EQ(samples().size(), 3u + 9u) << "three to warm up, nine rounds";
  for (const Sample& sample : samples()) {
    EXPECT_EQ(sample.before, Names{"flush"});
    EXPECT_EQ(sample.timed, Names{"a"});
  }
}

TEST_F(Bench, AHotSampleIsABatchOfLaunchesThatFindTheirOwnData) {
  // About two milliseconds of launches, of one at least and of 200 at most.
  for (const auto& [cold, batch] :
       {std::pair{125.0, 16}, std::pair{15.625, 128}, std::pair{3.0, 200}, std::pair{9000.0, 1},
        std::pair{0.25, 200}}) {
    gpu = {};
    Kernel a{"a", cold, cold / 2};
    const Measurement m = measure({a.contender()}, rounds(5, 5, true), nullptr).at(0);
    EXPECT_NEAR(m.hot.median, cold / 2, 1e-3) << cold;
    EXPECT_EQ(m.hot.n, 7);
    const auto all = samples();
    ASSERT_EQ(all.size(), 3u + 5u + 7u);
    for (std::size_t i = 8; i < all.size(); ++i) {
      Names before(1 + static_cast<std::size_t>(batch), "a");
      before.front() = "flush";
      EXPECT_EQ(all[i].before, before);
      EXPECT_EQ(all[i].timed, Names(static_cast<std::size_t>(batch), "a")) << cold;
    }
  }
}

TEST_F(Bench, EveryRoundRunsEveryContenderOnceInAnotherOrder) {
  // Clocks that fall: every launch of anything takes 1 % longer than the one before. Contenders
  // that are timed one after another would look different; interleaved, they are the same.
  double slower = 1;
  const auto drift = [&slower](int) { return 100 * ((slower *= 1.002) - 1); };
  std::vector<Kernel> kernels;
  for (const char* name : {"a", "b", "c", "d"}) kernels.push_back({name, 100, 50, 0, 0, drift});
  const auto all = measure(contenders_of(kernels), rounds(12, 12), nullptr);
  const auto taken = samples();
  ASSERT_EQ(taken.size(), 4u * 3 + 4u * 12);
  std::set<Names> orders;
  std::set<std::string> first;
  for (int round = 0; round < 12; ++round) {
    Names order;
    for (int i = 0; i < 4; ++i) order.push_back(taken[12 + 4 * round + i].timed.at(0));
    EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 4u) << "round " << round;
    orders.insert(order);
    first.insert(order.front());
  }
  EXPECT_GE(orders.size(), 6u) << "the order does not change";
  EXPECT_EQ(first.size(), 4u) << "somebody never begins a round";
  // Sample r is that of round r: later rounds are slower, and the means agree within the drift.
  std::vector<double> sums;
  for (const Measurement& m : all) {
    ASSERT_EQ(m.cold_us.size(), 12u);
    for (std::size_t r = 2; r < 12; ++r) EXPECT_GT(m.cold_us[r], m.cold_us[r - 2]) << r;
    double sum = 0;
    for (double us : m.cold_us) sum += us;
    sums.push_back(sum / 12);
  }
  const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
  EXPECT_LT(*most / *least, 1.005);
}

// Without a name of their own, the results come in the order of the contenders.
TEST_F(Bench, ResultsBelongToTheirContenders) {
  Kernel a{"a", 100}, b{"b", 300}, c{"c", 200};
  const auto all = measure({a.contender(), b.contender(), c.contender()}, rounds(9, 9), nullptr);
  EXPECT_NEAR(all.at(0).cold.median, 100, 1e-2);
  EXPECT_NEAR(all.at(1).cold.median, 300, 1e-2);
  EXPECT_NEAR(all.at(2).cold.median, 200, 1e-2);
}

TEST_F(Bench, TheSummaryIsOfTheMiddle) {
  // 100, 101, 102 ... 108 in some order; three launches to warm up.
  Kernel a{"a", 100, 50, 0, 0, [](int launch) { return (launch * 4) % 9; }};
  const Timing cold = measure({a.contender()}, rounds(9, 9), nullptr).at(0).cold;
  EXPECT_NEAR(cold.median, 104, 1e-2);
  EXPECT_NEAR(cold.q1, 102, 1e-2);
  EXPECT_NEAR(cold.q3, 106, 1e-2);
}

TEST_F(Bench, ASlowContenderIsSampledLessOftenButFiveTimesAtLeast) {
  const auto taken = [](double us, int most) {
    gpu = {};
    Kernel fast{"fast", 100}, slow{"slow", us, us, 1e9};  // loading it does not make it slow
    const auto all = measure({fast.contender(), slow.contender()}, rounds(most, most), nullptr);
    EXPECT_EQ(all[0].cold.n, most);
    std::vector<int> found;
    for (int r = 0; r < most; ++r) {
      if (!std::isnan(all[1].cold_us.at(static_cast<std::size_t>(r)))) found.push_back(r);
    }
    EXPECT_EQ(all[1].cold.n, static_cast<int>(found.size())) << "a missing sample counts";
    EXPECT_NEAR(all[1].cold.median, us, us * 1e-4);
    return found;
  };
  EXPECT_EQ(taken(19e3, 8), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(taken(20e3, 8), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(taken(21e3, 10), (std::vector<int>{0, 1, 2, 3, 4, 6, 8}));
  EXPECT_EQ(taken(45e3, 13), (std::vector<int>{0, 1, 2, 3, 4, 6, 9, 12}));
}

TEST_F(Bench, ItEndsWhenEveryMedianIsKnown) {
  const auto ran = [](BenchOptions options, std::vector<std::function<double(int)>> noises) {
    gpu = {};
    std::vector<Kernel> kernels;
    for (auto& noise : noises) {
      kernels.push_back(
          {std::string(1, static_cast<char>('a' + kernels.size())), 100, 50, 0, 0, noise});
    }
    return measure(contenders_of(kernels), options, nullptr).at(0).cold_us.size();
  };
  const auto still = [](int) { return 0.0; };
  const auto restless = [](int launch) { return launch % 2 ? 10.0 : 0.0; };
  EXPECT_EQ(ran(rounds(9, 50), {still}), 9u);
  EXPECT_EQ(ran(rounds(12, 50), {still}), 12u);
  EXPECT_EQ(ran(rounds(2, 50), {still}), 2u);
  EXPECT_EQ(ran(rounds(1, 50), {still}), 2u) << "one sample says nothing about its spread";
  BenchOptions exact = rounds(9, 50);
  exact.relative_spread = 0;
  EXPECT_EQ(ran(exact, {still}), 9u);
  EXPECT_EQ(ran(rounds(9, 50), {restless}), 50u);
  EXPECT_EQ(ran(rounds(9, 50), {still, restless}), 50u) << "one of two is not known yet";
  EXPECT_EQ(ran(rounds(9, 50), {restless, still}), 50u);
  // Quartiles 100 and 102 around 101 (100, 102, 100, 102 ...): 1.57 * 2 / sqrt(n) / 101 is at most
  // 0.005 from n = 39 on, that is where the median is 102: at n = 38 it is 101 and 0.00505.
  EXPECT_EQ(ran(rounds(9, 80), {[](int launch) { return launch % 2 ? 2.0 : 0.0; }}), 39u);
  BenchOptions content = rounds(9, 80);
  content.relative_spread = 0.01;
  EXPECT_EQ(ran(content, {[](int launch) { return launch % 2 ? 2.0 : 0.0; }}), 10u);
  // Out of time: after the fewest rounds that count, however noisy they are.
  BenchOptions hasty = rounds(6, 1000);
  hasty.seconds = 0;
  EXPECT_EQ(ran(hasty, {restless}), 6u);
  hasty.seconds = 0.3;  // many rounds, on a busy machine too
  const auto begun = std::chrono::steady_clock::now();
  const std::size_t taken = ran(hasty, {[&](int launch) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                  return restless(launch);
                                }});
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(300));
  EXPECT_GT(taken, 6u);
  EXPECT_LT(taken, 310u);
}

TEST_F(Bench, ProgressSaysWhichRound) {
  Kernel a{"a"}, b{"b"};
  BenchOptions options = rounds(2, 2);
  Names said;
  options.progress = [&said](const std::string& text) { said.push_back(text); };
  measure({a.contender(), b.contender()}, options, nullptr);
  EXPECT_EQ(said, (Names{"timing 2 contenders, round 1", "timing 2 contenders, round 2"}));
}

TEST_F(Bench, AContenderThatFailsIsNotTimedAndTheOthersAre) {
  Kernel good{"good"}, late{"late"};
  int launches = 0;
  const Contender refused{"refused", [&launches](Stream) {
                            ++launches;
                            throw std::runtime_error("too many threads");
                          }};
  Contender dies = late.contender();
  const auto run = dies.run;
  dies.run = [&](Stream stream) {  // in the third round: a launch of its own, an error on the GPU
    run(stream);
    if (late.launches == 3 + 3) gpu.last_error = cudaErrorLaunchFailure;
  };
  const auto all = measure({refused, good.contender(), dies}, rounds(9, 9, true), nullptr);
  EXPECT_EQ(all[0].error, "too many threads");
  EXPECT_EQ(launches, 1) << "launched again after it had failed";
  EXPECT_EQ(all[0].cold.n + all[0].hot.n, 0);
  EXPECT_EQ(all[0].cold_us.size(), 9u) << "rounds pair";
  EXPECT_EQ(all[1].error, "");
  EXPECT_EQ(all[1].cold.n, 9);
  EXPECT_EQ(all[2].error, "launch failure");
  EXPECT_EQ(late.launches, 3 + 3) << "launched again after it had failed";
  EXPECT_EQ(all[2].cold.n + all[2].hot.n, 0);
}

TEST_F(Bench, NobodyWaitsForAContenderThatFailed) {
  Kernel good{"good"};
  const Contender refused{"refused", [](Stream) { throw std::runtime_error("no"); }};
  EXPECT_EQ(measure({refused, good.contender()}, rounds(9, 50), nullptr)[1].cold.n, 9);
}

TEST_F(Bench, WithoutARoundThereIsNoColdTiming) {
  Kernel a{"a", 125, 15.625};
  const Measurement m = measure({a.contender()}, rounds(0, 0, true), nullptr).at(0);
  EXPECT_EQ(m.cold.n, 0);
  EXPECT_EQ(m.cold.median, 0);
  EXPECT_NEAR(m.hot.median, 15.625, 1e-3);
}

TEST_F(Bench, ASampleAtLowClocksIsTakenAgainTwiceAtMost) {
  const auto launches = [](unsigned slow_mhz, unsigned slow_for) {
    gpu = {};
    nvml() = {};
    nvml().slow_mhz = slow_mhz, nvml().slow_for = slow_for;
    Kernel a{"a"};
    // The sample that counts is the last one that was taken.
    a.noise = [&a](int launch) { return launch; };
    const Measurement m = measure({a.contender()}, rounds(1, 1), nullptr).at(0);
    EXPECT_NEAR(m.cold_us.at(0), 100 + a.launches - 1, 1e-2);
    return a.launches - 3;
  };
  EXPECT_EQ(launches(0, 0), 1);
  EXPECT_EQ(launches(1485, 3), 1) << "three quarters of 1980 are enough";
  EXPECT_EQ(launches(1484, 1), 2);
  EXPECT_EQ(launches(1484, 9), 3);
  // If a clock cannot be read, or the highest is unknown, all samples are kept.
  nvml() = {};
  nvml().fails = true;
  Kernel b{"b"};
  std::vector<ClockSample> clocks;
  measure({b.contender()}, rounds(1, 1), &clocks);
  EXPECT_EQ(b.launches, 4);
  EXPECT_TRUE(clocks.empty());
  nvml() = {};
  nvml().max_sm_mhz = 0, nvml().sm_mhz = 10;
  Kernel c{"c"};
  measure({c.contender()}, rounds(1, 1), nullptr);
  EXPECT_EQ(c.launches, 4);
}

TEST_F(Bench, TheClockLogHasASampleEveryFourthRound) {
  Kernel a{"a"}, b{"b"};
  a.noise = [](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0.0;
  };
  std::vector<ClockSample> clocks;
  nvml().slow_mhz = 990, nvml().slow_for = 1;  // taken again, and logged once
  measure({a.contender(), b.contender()}, rounds(9, 9), &clocks);
  ASSERT_EQ(clocks.size(), 2u * 3) << "rounds 0, 4 and 8, both contenders";
  EXPECT_EQ(clocks[0].sm_mhz, 990);
  EXPECT_EQ(clocks[1].sm_mhz, 1980);
  EXPECT_EQ(clocks[1].memory_mhz, 2619);
  EXPECT_EQ(clocks[1].celsius, 40);
  EXPECT_NEAR(clocks[1].watts, 350.5, 1e-9);
  EXPECT_GE(clocks[0].seconds, 0);
  EXPECT_GE(clocks.back().seconds, 0.008);
  EXPECT_LT(clocks.back().seconds, 60);
  for (std::size_t i = 1; i < clocks.size(); ++i) {
    EXPECT_GE(clocks[i].seconds, clocks[i - 1].seconds);
  }
}

TEST_F(Bench, ClocksAreThoseOfTheCurrentDevice) {
  sample_clocks();
  FakeNvml fresh;
  EXPECT_EQ(max_sm_clock_mhz(), 1980);
  nvml().sm_mhz = 1200, nvml().memory_mhz = 1593, nvml().milliwatts = 1500, nvml().celsius = 31;
  const auto sample = sample_clocks();
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->sm_mhz, 1200);
  EXPECT_EQ(sample->memory_mhz, 1593);
  EXPECT_EQ(sample->celsius, 31);
  EXPECT_NEAR(sample->watts, 1.5, 1e-9);
  EXPECT_EQ(sample->seconds, 0);
  nvml().millijoules = 7250;
  EXPECT_NEAR(total_joules().value_or(0), 7.25, 1e-9);
  nvml().fails = true;
  EXPECT_FALSE(sample_clocks().has_value());
  EXPECT_FALSE(total_joules().has_value());
}

TEST_F(Bench, GoogleBenchmarkGetsMediansAndRates) {
  std::vector<Contender> contenders = {{"a", {}}, {"failed", {}}, {"b", {}}};
  std::vector<Measurement> measured(3);
  measured[0].cold = {100, 99, 101, 9}, measured[0].hot = {50, 49, 51, 7};
  measured[1].error = "no";
  measured[2].cold = {200, 199, 201, 9}, measured[2].hot = {20, 19, 21, 7};
  auto& all = benchmark::registered();
  all.clear();
  register_google_benchmark("chapter-1/scale", contenders, measured, 1e6, 3e6);
  ASSERT_EQ(all.size(), 4u);
  const auto state = [&](std::size_t i, const char* name) {
    EXPECT_EQ(all[i]->name, std::string("chapter-1/scale/") + name);
    EXPECT_TRUE(all[i]->manual_time);
    EXPECT_EQ(all[i]->iterations, 1);
    EXPECT_EQ(all[i]->unit, benchmark::kMicrosecond);
    benchmark::State taken;
    all[i]->run(taken);
    EXPECT_EQ(taken.iterations, 1);
    return taken;
  };
  benchmark::State cold = state(0, "a/cold"), hot = state(3, "b/hot");
  state(1, "a/hot"), state(2, "b/cold");
  EXPECT_NEAR(cold.seconds, 100e-6, 1e-12);
  EXPECT_NEAR(cold.counters["bytes/s"], 1e6 / 100e-6, 1);
  EXPECT_NEAR(cold.counters["FLOP/s"], 3e6 / 100e-6, 1);
  EXPECT_EQ(cold.counters["samples"], 9);
  EXPECT_NEAR(hot.seconds, 20e-6, 1e-12);
  EXPECT_EQ(hot.counters["samples"], 7);
  all.clear();
  register_google_benchmark("x", contenders, measured, 1e6, 0);
  benchmark::State bytes_only;
  all.at(0)->run(bytes_only);
  EXPECT_EQ(bytes_only.counters.count("FLOP/s"), 0u);
  all.clear();
  EXPECT_FALSE(take_google_benchmark_options({"--colour=blue"}));
  EXPECT_TRUE(take_google_benchmark_options({"--benchmark_format=json"}));
  EXPECT_FALSE(take_google_benchmark_options({"--benchmark_format=json", "--colour=blue"}));
  report_google_benchmark();
  EXPECT_EQ(benchmark::times_reported(), 1);
}

}  // namespace
}  // namespace cookbook
