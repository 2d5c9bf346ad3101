// SPDX-License-Identifier: MIT
// Host-side loops spread over the machine's cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/crash.hpp"
#endif

namespace cookbook {

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count). Ranges smaller than
/// `grain` are not split. The first exception of a range is thrown when all ranges have ended.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t parts =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, cores);
  if (parts == 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::exception_ptr first;
  for (std::int64_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
#if COOKBOOK_SIMT
      const simt::CrashStack stack;
#endif
      try {
        body(count * part / parts, count * (part + 1) / parts);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace cookbook
