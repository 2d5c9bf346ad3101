// SPDX-License-Identifier: MIT
// What the tracer observes of asynchronous operations. A unit reports accesses at issue, whatever
// the schedule, so that a missing wait is found even when the operation happens to run late.
#pragma once

#include <cstddef>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

/// What a bulk operation does to a range. An addition is atomic element by element; of
/// floating-point numbers the order of two additions shows in the last bits.
// `answer`: of cluster launch control, to memory that ordinary loads have read before.
enum class BulkUse { read, write, add, add_rounded, answer };

struct AsyncTracer {
  // The current thread issues an operation, which knows what the thread knows now.
  virtual Actor async_begin() = 0;
  // cp.async copies `valid_bytes` from global memory and fills up to `bytes` with zeros; counted
  // like a lane of a load and of a store, as it goes through the generic proxy.
  virtual void async_copy(void* smem, const void* gmem, unsigned bytes, unsigned valid_bytes,
                          void* pc, Actor operation) = 0;
  // st.async, of the generic proxy too.
  virtual void async_store(void* address, unsigned bytes, void* pc, Actor operation) = 0;
  // A range that a bulk copy (TMA too) or wgmma accesses through the async proxy; counted per
  // operation.
  virtual void async_bulk(const void* address, size_t bytes, BulkUse use, void* pc,
                          Actor operation) = 0;
  // fence.proxy.async by the current thread: its earlier plain accesses are ordered before later
  // asynchronous ones.
  virtual void proxy_fence() = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local AsyncTracer* async_tracer = nullptr;

}  // namespace cookbook::simt
