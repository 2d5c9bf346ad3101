// SPDX-License-Identifier: MIT
// What the tracer observes of memory accesses that the runtime or a unit performs for the current
// thread. Compiled code reports its own (tracer/tsan_entry.cpp).
#pragma once

#include <cstdint>

namespace cookbook::simt {

struct AccessTracer {
  // An atomic read-modify-write comes next (those that g++ has no builtin for).
  virtual void atomic_access(const void* address, int bytes, void* pc) = 0;
  // The memory that a thread freed is no longer to be accessed.
  virtual void memory_freed(const void* begin) = 0;
  // It has been performed.
  virtual void atomic_done(const void* address) = 0;
  // load_acquire() has been performed; store_release() comes next.
  virtual void load_acquire(const void* address, int bytes, void* pc) = 0;
  virtual void store_release(const void* address, int bytes, void* pc) = 0;
  // A fence that orders the thread's accesses; `block_only`: for threads of its own block.
  virtual void memory_fence(bool block_only) = 0;
  // A synchronous access by ldmatrix or stmatrix: counted and checked as an ordinary one.
  virtual void unit_access(const void* address, int bytes, bool is_write, void* pc) = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local AccessTracer* access_tracer = nullptr;

}  // namespace cookbook::simt
