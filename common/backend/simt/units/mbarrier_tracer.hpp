// SPDX-License-Identifier: MIT
// What the tracer observes of mbarriers, besides what they release and acquire.
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

struct MbarrierTracer {
  // The current thread initialises, or ends the life of, the mbarrier at `bar`.
  virtual void mbarrier_init(const uint64_t* bar, void* pc) = 0;
  virtual void mbarrier_invalidate(const uint64_t* bar) = 0;
  // `who`, for the current thread, arrives at the mbarrier, waits for it or will complete bytes.
  virtual void mbarrier_use(const uint64_t* bar, Actor who, bool async_proxy, void* pc) = 0;
  // fence.mbarrier_init by the current thread.
  virtual void mbarrier_init_fence() = 0;
  // The current thread's wait is over. `idle`: no phase of the barrier was complete, and the wait
  // was for the one before the first, which counts as complete. That is right for a stage that was
  // never filled, and a wrong parity everywhere else.
  virtual void mbarrier_waited(bool idle, void* pc) = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local MbarrierTracer* mbarrier_tracer = nullptr;

}  // namespace cookbook::simt
