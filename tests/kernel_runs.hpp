// SPDX-License-Identifier: MIT
// Launches in which buffers stand for pointers to their elements, the schedules they run under, and
// the values in buffers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "tests/error_of.hpp"

namespace cookbook {

/// `value` for a parameter of type P.
template <class P, class A>
decltype(auto) argument(A&& value) {
  if constexpr (std::is_base_of_v<DeviceMemory, std::remove_cvref_t<A>>) {
    return value.template as<std::remove_pointer_t<P>>();
  } else {
    return static_cast<P>(std::forward<A>(value));
  }
}

/// launch() on the default stream.
template <class... P, class... A>
void run_kernel(void (*kernel)(P...), const LaunchConfig& config, A&&... arguments) {
  launch(kernel, config, {}, argument<P>(std::forward<A>(arguments))...);
}

/// What is said of an error that a kernel made; "" if it made none.
template <class... P, class... A>
std::string launch_error(void (*kernel)(P...), const LaunchConfig& config, A&&... arguments) {
  return error_of<simt::KernelError>(
      [&] { run_kernel(kernel, config, std::forward<A>(arguments)...); });
}

/// Calls `body` under the schedules late, early, and random with each of `seeds`.
inline void for_all_schedules(const std::function<void()>& body,
                              const std::vector<uint64_t>& seeds = {1, 2, 3, 4, 5}) {
  using simt::AsyncSchedule;
  const auto run = [&body](AsyncSchedule schedule, uint64_t seed, const std::string& name) {
    SCOPED_TRACE(name);
    simt::set_async_schedule(schedule, seed);
    body();
  };
  run(AsyncSchedule::late, 1, "late");
  run(AsyncSchedule::early, 1, "early");
  for (const uint64_t seed : seeds) {
    run(AsyncSchedule::random, seed, "random " + std::to_string(seed));
  }
  simt::set_async_schedule(AsyncSchedule::late);
}

template <class T>
DeviceMemory upload(const std::vector<T>& values, const char* name) {
  DeviceMemory memory(values.size() * sizeof(T), name);
  memory.copy_from_host(values.data(), memory.bytes());
  return memory;
}

template <class T>
std::vector<T> download(const DeviceMemory& memory) {
  std::vector<T> values(memory.bytes() / sizeof(T));
  memory.copy_to_host(values.data(), memory.bytes());
  return values;
}

}  // namespace cookbook
