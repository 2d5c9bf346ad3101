// SPDX-License-Identifier: MIT
// Timing on a GPU: interleaved cold samples, hot samples, paired ratios, the clock log.
// CUDA backend only: on the SIMT backend there is nothing to time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/harness/report/result.hpp"

namespace cookbook {

/// Something to be timed: a level or a library call. `run` only launches.
struct Contender {
  std::string name;
  std::function<void(Stream)> run;
};

struct Measurement {
  Timing cold, hot;
  std::vector<double> cold_us;  ///< one sample a round, in round order
  std::string error;            ///< a launch failed: why; the timings are then empty
};

struct BenchOptions {
  int min_rounds = 9;
  int max_rounds = 200;
  double seconds = 2.5;            ///< stop after this long, once min_rounds are done
  double relative_spread = 0.005;  ///< stop when every contender's median is known this well
  bool hot = true;                 ///< hot timings as well; nothing heats a GPU like them
  bool clocks = true;              ///< read the clock after each sample; false: many short ones
  std::function<void(const std::string&)> progress;
};

/// Times all contenders in interleaved rounds: each round runs every contender once, in an order
/// that changes from round to round, each after the L2 has been filled with other (clean) lines.
/// Hot timings (back-to-back launches, nothing flushed) follow. Samples during which the SM clock
/// fell under three quarters of its maximum are taken again, twice at most.
std::vector<Measurement> measure(const std::vector<Contender>& contenders,
                                 const BenchOptions& options, std::vector<ClockSample>* clocks);

/// Passes --benchmark_* options to Google Benchmark. False if it does not know one of them.
bool take_google_benchmark_options(const std::vector<std::string>& arguments);
/// Registers medians with Google Benchmark: one benchmark per contender, cold and hot, with bytes
/// and FLOPs as rates.
void register_google_benchmark(const std::string& prefix, const std::vector<Contender>& contenders,
                               const std::vector<Measurement>& measurements, double bytes,
                               double flops);
/// Google Benchmark reports all registered medians, as its options say.
void report_google_benchmark();

}  // namespace cookbook
