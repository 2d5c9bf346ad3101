// SPDX-License-Identifier: MIT
// Ends a process whose launch makes no progress any more, and says where its threads are. Before,
// lets the threads of a block take turns.
#pragma once

#include <cstdint>
#include <string>

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

// Where the code of the program is, as the linker has placed it: there, and where only such code
// has called, a thread may be interrupted. Initially nowhere: its runtime and libraries may hold a
// lock, or be about to switch threads.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
};
inline CodeRange preemptible_code;

// For this OS thread, before it runs fibers: the watchdog can then find out where it is.
void answer_watchdog();

// "problem.hpp:41": where an OS thread of this process is that runs no kernel. One caller at a
// time. "" if it is not known.
std::string line_of_thread(int os_thread);

}  // namespace cookbook::simt
