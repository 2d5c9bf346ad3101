// SPDX-License-Identifier: MIT
// What common/bench uses of Google Benchmark, for tests/bench_test.cpp: benchmarks run once, and
// what they report is kept.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace benchmark {

enum TimeUnit { kNanosecond, kMicrosecond, kMillisecond, kSecond };

struct State {
  struct Turn {
    ~Turn() {}  // so that nobody is told that the loop's variable is not used
  };
  std::map<std::string, double> counters;
  double seconds = 0;
  int iterations = 0;
  void SetIterationTime(double taken) { seconds = taken, ++iterations; }
  const Turn* begin() const { return once_; }
  const Turn* end() const { return once_ + 1; }

 private:
  Turn once_[1];
};

struct Benchmark {
  std::string name;
  std::function<void(State&)> run;
  bool manual_time = false;
  int iterations = 0;
  TimeUnit unit = kNanosecond;
  Benchmark* UseManualTime() { return manual_time = true, this; }
  Benchmark* Iterations(int n) { return iterations = n, this; }
  Benchmark* Unit(TimeUnit u) { return unit = u, this; }
};

inline std::vector<Benchmark*>& registered() {
  static std::vector<Benchmark*> all;
  return all;
}
inline Benchmark* RegisterBenchmark(const char* name, std::function<void(State&)> run) {
  registered().push_back(new Benchmark{name, std::move(run), false, 0, kNanosecond});
  return registered().back();
}

/// Takes out what begins with --benchmark_, as the library does.
inline void Initialize(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string(argv[i]).rfind("--benchmark_", 0) != 0) argv[kept++] = argv[i];
  }
  *argc = kept;
}
/// Whether something is left.
inline bool ReportUnrecognizedArguments(int argc, char**) { return argc > 1; }
inline int& times_reported() {
  static int times = 0;
  return times;
}
inline void RunSpecifiedBenchmarks() { ++times_reported(); }

}  // namespace benchmark
