// SPDX-License-Identifier: MIT
// Which thread of a group runs next, and what runs between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/backend/fault.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// Queues a thread that was blocked. Wake rule: the thread that completes a condition wakes every
// thread that waits for it. A woken thread tests its condition again if others could have changed
// it in between.
void make_ready(Thread* thread);
// The same for lanes of a warp that have exchanged values. In plain mode they run before others.
void make_lanes_ready(Warp& warp, uint32_t lanes);

// Suspends the current thread until make_ready(). `what` and `object` say what it waits for in a
// deadlock report; `pc` where (a return address within the kernel).
void block_current(const char* what, void* pc, const Waitable* object = nullptr);

// Lets every other ready thread run once; for spin loops. If all threads of a group only spin for a
// long time and nothing else happens, it is an error.
void yield_current(void* pc);

// In a signal handler that interrupted the current thread at `pc`, in code of the program: lets the
// other threads of its group run. It may spin on what one of them does, as it may on a GPU, where
// threads advance independently.
void preempt_current(void* pc);

// Abandons the launch: launch() throws KernelError. The message is completed with kernel, block and
// thread, and with file:line of `pc` if that is given.
[[noreturn]] void fail(const std::string& message, void* pc = nullptr);
[[noreturn]] void fail(Fault fault, const std::string& message, void* pc);

// Of a thread of a traced group that has exited: where it left the path of the others.
void* place_of_exit(const Thread& thread);

std::string triple(uint3 v);  // "(1,2,3)"

// Traced mode: the current thread enters a basic block. Lanes of a warp wait here for each other;
// the group with the deepest call, then the lowest pc, goes on, which is how a warp reconverges.
void bb_park(void* pc);

// ---- asynchronous operations ----

// Hands an operation to the schedule: `early` runs it at once, `late` when no thread of the group
// can run (first in, first out), `random` at a random moment in random order. Whatever is left runs
// before the group ends.
void defer(std::function<void()> operation);

// Random numbers of the schedule, from a generator seeded for each group: the same for any number
// of workers.
uint32_t random_u32();

// ---- what the units add ----

struct UnitCallbacks {
  void (*group_begin)(Group&);
  void (*block_begin)(Block&);
  void (*thread_exit)(Thread&);  // on the thread, before it counts as exited
  // Every thread exited, every deferred operation ran. Not called for an abandoned group.
  void (*group_end)(Group&);
};
extern const UnitCallbacks unit_callbacks;

}  // namespace cookbook::simt
