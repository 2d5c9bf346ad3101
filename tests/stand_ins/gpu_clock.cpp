// SPDX-License-Identifier: MIT
// A GPU clock for tests/grading/grading_test.py: kernels run on the SIMT backend, and each launch
// is said to take equally long, and six launches every other time a sixth longer. Other numbers
// stand for what a process could do to be called fast:
//
//   3  work on another stream, which the default stream does not wait for
//   4  a forged clock: less is said than it took
//   5  a result that was there before: no time at all
#include "tools/grading/gpu_clock.hpp"

#include <chrono>
#include <thread>

#include "common/backend/observe.hpp"

namespace cookbook::grading {
namespace {

constexpr double kLaunchUs = 10e3, kAfterUs = 20;
int launches = 0;

}  // namespace

void forget_persisting_lines() {}

Bracket time_cold(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  launches = 0;
  set_observer({.launch = [](const void* kernel, const LaunchConfig*) {
    launches += kernel != nullptr ? 1 : 0;
  }});
  work();
  set_observer({});
  static bool longer = false;
  longer = !longer;
  const double us = kLaunchUs * (launches == 6 && longer ? 7 : launches);
  if (launches == 5) return {1, 1 + kAfterUs};
  std::this_thread::sleep_until(begin + std::chrono::microseconds(static_cast<long>(us)));
  if (launches == 3) return {us / 3, us + kAfterUs};
  if (launches == 4) return {us / 2, us / 2 + kAfterUs};
  return {us, us + kAfterUs};
}

// Slow for a while, once it is warm.
SmClock sm_clock() {
  static int calls = 0;
  ++calls;
  return {calls == 4 || calls == 5 ? 500 : 1000, 1200};
}

}  // namespace cookbook::grading
