// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/timeline.hpp"

#include <map>
#include <mutex>

#include "common/backend/marks.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"
#include "common/device/timeline.cuh"

namespace cookbook {
namespace simt {
namespace {

struct Recording {
  std::mutex mutex;  // workers run clusters at the same time
  std::uint32_t blocks = 0;
  std::map<std::uint64_t, std::vector<timeline::Event>> clusters;
};

Recording& recording() {
  static Recording instance;
  return instance;
}

}  // namespace

std::atomic<bool> timeline_is_on{false};

void start_timeline(std::uint32_t blocks) {
  recording().blocks = blocks;
  recording().clusters.clear();
  timeline_is_on = true;
}

std::vector<timeline::Event> stop_timeline() {
  timeline_is_on = false;
  std::vector<timeline::Event> all;
  for (const auto& [id, events] : recording().clusters) {
    all.insert(all.end(), events.begin(), events.end());
  }
  recording().clusters.clear();
  return all;
}

void mark(timeline::Kind kind, timeline::Edge edge, std::uint32_t object, std::uint32_t value) {
  if (!timeline_is_on.load(std::memory_order_relaxed)) return;
  const Thread& thread = *current_thread;
  if (thread.lane != 0) return;
  const Group& group = *thread.block->group;
  const uint3 at = thread.block->block_idx, grid = group.launch->grid;
  const std::uint64_t block = at.x + std::uint64_t{grid.x} * (at.y + std::uint64_t{grid.y} * at.z);
  if (block >= recording().blocks) return;
  const std::lock_guard<std::mutex> lock(recording().mutex);
  auto& events = recording().clusters[group.id];
  events.push_back({0, events.size(), static_cast<std::uint32_t>(block),
                    static_cast<std::uint16_t>(thread.id / kWarpSize), kind, edge, object, value});
}

}  // namespace simt

std::vector<timeline::Event> marks_of(const std::function<void()>& run) {
  simt::start_timeline(1);
  run();
  return simt::stop_timeline();
}

void timeline::record(Kind kind, Edge edge, std::uint32_t object, std::uint32_t value) {
  simt::mark(kind, edge, object, value);
}

}  // namespace cookbook
