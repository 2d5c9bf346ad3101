// SPDX-License-Identifier: MIT
// What the tracer observes of launches.
#pragma once

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// launch_begin and launch_end come from the launching thread while no worker runs, the others from
// the worker that runs the group.
struct LaunchTracer {
  virtual void launch_begin(const Launch& launch) = 0;
  virtual void launch_end(const Launch& launch) = 0;
  virtual void group_begin(Group& group) = 0;
  // `abandoned`: by an error, perhaps before it began.
  virtual void group_end(bool abandoned) = 0;
  // Warp::basic_blocks and ::active_lanes are final.
  virtual void block_end(Block& block) = 0;
};
// Null unless a trace is being recorded: this is the traced mode.
inline LaunchTracer* launch_tracer = nullptr;

}  // namespace cookbook::simt
