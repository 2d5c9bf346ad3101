// SPDX-License-Identifier: MIT
// Ends a process whose launch makes no progress any more, and says where its threads are.
#pragma once

namespace cookbook::simt {

struct LaunchState;

// While one of these lives, its launch is watched: by wall clock, and time in a debugger does not
// count. One at a time.
class Watch {
 public:
  explicit Watch(LaunchState& state);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

// For this OS thread, before it runs fibers: the watchdog can then find out where it is.
void answer_watchdog();

}  // namespace cookbook::simt
