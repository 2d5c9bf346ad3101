// SPDX-License-Identifier: MIT
// Host-side loops spread over the machine's cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace cookbook {

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count). Ranges smaller than
/// `grain` are not split. `body` must not throw.
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
  for (std::int64_t part = 0; part < parts; ++part) {
    threads.emplace_back(
        [&body, count, part, parts] { body(count * part / parts, count * (part + 1) / parts); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cookbook
