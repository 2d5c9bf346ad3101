// SPDX-License-Identifier: MIT
// The timeline of a level: from the marks that its warps made to spans on tracks, and to a trace
// that Perfetto opens. docs/profiling.md says how to read one.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/backend/timeline.hpp"

namespace cookbook {

/// What a track shows from `begin` to `end`: microseconds, or on the SIMT backend places in the
/// order of marks.
struct TimelineSpan {
  std::string name;      ///< "wait full[2]", "multiply K[0]"
  std::string category;  ///< wait, copy, multiply, softmax or store
  double begin = 0, end = 0;
  std::uint32_t bytes = 0;  ///< of a copy by TMA; 0: not known
};

/// One row of the timeline. Its spans nest: two are apart, or one holds the other.
struct TimelineTrack {
  std::uint32_t block = 0;
  std::string name;  ///< "producer (warp 0)", "consumer 1 (warp 8): multiplies in flight"
  int warp = -1;     ///< -1: the block's copies
  std::vector<TimelineSpan> spans;  ///< by begin; a span comes before those that it holds
};

/// The tracks of the blocks in `events`: of each block its copies by TMA, then its warps, each
/// followed by what it has in flight. `timed`: the events have times, which tracks count in
/// microseconds from the first event; otherwise they count marks.
///
/// An asynchronous operation lasts from its start until a wait shows that it has ended.
std::vector<TimelineTrack> make_timeline(std::vector<timeline::Event> events, bool timed);

/// A trace in Chrome's trace-event format: a process per block, a thread per track, and `about` as
/// its metadata.
nlohmann::ordered_json timeline_json(const std::vector<TimelineTrack>& tracks,
                                     const nlohmann::ordered_json& about);

}  // namespace cookbook
