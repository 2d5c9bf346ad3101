// SPDX-License-Identifier: MIT
#include "common/bench/bench.hpp"

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "common/bench/flush.hpp"
#include "common/bench/nvml.hpp"
#include "common/harness/report/statistics.hpp"

namespace cookbook {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

// Two events around a region of the default stream.
class GpuTimer {
 public:
  GpuTimer() {
    require(cudaEventCreate(&start_));
    require(cudaEventCreate(&stop_));
  }
  ~GpuTimer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;
  void start() { require(cudaEventRecord(start_)); }
  /// Microseconds since start(), of the work that was launched in between.
  double stop() {
    require(cudaEventRecord(stop_));
    require(cudaEventSynchronize(stop_));
    require(cudaGetLastError());
    float ms = 0;
    require(cudaEventElapsedTime(&ms, start_, stop_));
    return 1e3 * static_cast<double>(ms);
  }

 private:
  cudaEvent_t start_{}, stop_{};
};

Timing summarise(std::vector<double> samples) {
  std::erase_if(samples, [](double x) { return std::isnan(x); });
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.25), quantile(samples, 0.75),
          static_cast<int>(samples.size())};
}

// Half-width of the median's 95 % interval relative to the median (notched box-plot rule).
double relative_spread(const Timing& t) {
  return t.n < 2 ? 1 : 1.57 * (t.q3 - t.q1) / std::sqrt(static_cast<double>(t.n)) / t.median;
}

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kSlowMicroseconds = 20e3;

}  // namespace

std::vector<Measurement> measure(const std::vector<Contender>& contenders,
                                 const BenchOptions& options, std::vector<ClockSample>* clocks) {
  std::vector<Measurement> results(contenders.size());
  GpuTimer timer;
  const int full_clock = max_sm_clock_mhz();      // 0 where it is not known: any clock is accepted
  std::vector<int> stride(contenders.size(), 1);  // slow contenders run every stride-th round
  auto guarded = [&](std::size_t c, auto&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      results[c].error = error.what();
    }
  };
  // Microseconds per launch of `timed` launches, after `warm` ones; with none of these the L2 holds
  // other lines.
  const auto sample = [&](std::size_t c, int warm, int timed) {
    flush_l2(Stream{});
    for (int launch = 0; launch < warm + timed; ++launch) {
      if (launch == warm) timer.start();
      contenders[c].run(Stream{});
    }
    return timer.stop() / timed;
  };
  // Warm-up: module load, clocks, and how long each one takes.
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    guarded(c, [&] {
      double us = 0;
      for (int i = 0; i < 3; ++i) us = sample(c, 0, 1);
      stride[c] = us > kSlowMicroseconds ? static_cast<int>(us / kSlowMicroseconds) + 1 : 1;
    });
  }
  const auto start = Clock::now();
  std::mt19937 random(1);
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < options.max_rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t c : order) {
      results[c].cold_us.push_back(kMissing);
      // A slow contender is still sampled five times, so that its pairs exist.
      const bool due = round % stride[c] == 0 || round < 5;
      if (!results[c].error.empty() || !due) continue;
      guarded(c, [&] {
        for (int attempt = 0; attempt < 3; ++attempt) {
          results[c].cold_us.back() = sample(c, 0, 1);
          const auto now = options.clocks ? sample_clocks() : std::nullopt;
          if (now && clocks && attempt == 0 && round % 4 == 0) {
            clocks->push_back(*now);
            clocks->back().seconds = seconds_since(start);
          }
          if (!now || now->sm_mhz * 4 >= full_clock * 3) break;
        }
      });
    }
    bool settled = round + 1 >= options.min_rounds;
    for (const Measurement& m : results) {
      if (m.error.empty() && relative_spread(summarise(m.cold_us)) > options.relative_spread) {
        settled = false;
      }
    }
    if (options.progress) {
      options.progress(fmt::format("timing {} contenders, round {}", contenders.size(), round + 1));
    }
    if (settled) break;
    if (round + 1 >= options.min_rounds && seconds_since(start) > options.seconds) break;
  }
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (!results[c].error.empty()) continue;
    results[c].cold = summarise(results[c].cold_us);
    if (!options.hot) continue;
    guarded(c, [&] {
      // Back to back for about two milliseconds per sample, so that launch gaps overlap.
      const int batch =
          std::clamp(static_cast<int>(2000 / std::max(results[c].cold.median, 1.0)), 1, 200);
      std::vector<double> samples;
      for (int i = 0; i < 7; ++i) samples.push_back(sample(c, batch, batch));
      results[c].hot = summarise(samples);
    });
  }
  return results;
}

bool take_google_benchmark_options(const std::vector<std::string>& arguments) {
  static std::vector<std::string> texts;  // Google Benchmark keeps pointers to them
  texts = {"chapter"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  int argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  return !benchmark::ReportUnrecognizedArguments(argc, argv.data());
}

void register_google_benchmark(const std::string& prefix, const std::vector<Contender>& contenders,
                               const std::vector<Measurement>& measurements, double bytes,
                               double flops) {
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    if (!measurements[c].error.empty()) continue;
    for (const bool cold : {true, false}) {
      const Timing timing = cold ? measurements[c].cold : measurements[c].hot;
      const std::string name =
          fmt::format("{}/{}/{}", prefix, contenders[c].name, cold ? "cold" : "hot");
      // The sampler above has determined how often to run; Google Benchmark registers and reports.
      benchmark::RegisterBenchmark(name.c_str(),
                                   [timing, bytes, flops](benchmark::State& state) {
                                     for (auto _ : state)
                                       state.SetIterationTime(timing.median * 1e-6);
                                     state.counters["bytes/s"] = bytes / (timing.median * 1e-6);
                                     if (flops > 0)
                                       state.counters["FLOP/s"] = flops / (timing.median * 1e-6);
                                     state.counters["samples"] = timing.n;
                                   })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

void report_google_benchmark() { benchmark::RunSpecifiedBenchmarks(); }

}  // namespace cookbook
