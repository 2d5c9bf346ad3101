// SPDX-License-Identifier: MIT
// Records the marks of common/device/timeline.cuh. Plain executables only: traced kernels have
// none.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/backend/timeline.hpp"

namespace cookbook::simt {

/// From now on, records what the first `blocks` blocks of every launch do, by the first lane of
/// each warp. Not during a launch.
void start_timeline(std::uint32_t blocks);
/// Ends the recording. Events of a cluster are in the order in which they happened; clusters
/// follow one another, because nothing orders them.
std::vector<timeline::Event> stop_timeline();

/// Whether marks are recorded, for the units that make them.
extern std::atomic<bool> timeline_is_on;

/// A mark of the current thread, for the runtime's units.
void mark(timeline::Kind kind, timeline::Edge edge, std::uint32_t object = 0,
          std::uint32_t value = 0);

/// Marks the begin of a wait, and at the end of the scope its end.
class MarkedWait {
 public:
  MarkedWait(timeline::Kind kind, std::uint32_t object, std::uint32_t value = 0)
      : kind_(kind), object_(object), value_(value) {
    mark(kind_, timeline::Edge::begin, object_, value_);
  }
  ~MarkedWait() { mark(kind_, timeline::Edge::end, object_, value_); }
  MarkedWait(const MarkedWait&) = delete;
  MarkedWait& operator=(const MarkedWait&) = delete;

 private:
  timeline::Kind kind_;
  std::uint32_t object_, value_;
};

}  // namespace cookbook::simt
