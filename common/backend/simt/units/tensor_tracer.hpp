// SPDX-License-Identifier: MIT
// What the tracer observes of tensor memory. A unit reports accesses at issue, as of other
// asynchronous operations (async_tracer.hpp).
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

/// Columns of a block's tensor memory, and of its 16 groups of eight lanes those whose bit is set.
struct TensorRange {
  const Block* block;
  uint32_t first, columns;
  uint32_t groups;
};

struct TensorTracer {
  // `by_product`: of an mma, for which something must have been written.
  virtual void tensor_read(const TensorRange& range, bool by_product, void* pc,
                           Actor operation) = 0;
  // `is_store`: by tcgen05.st.
  virtual void tensor_write(const TensorRange& range, bool is_store, void* pc, Actor operation) = 0;
  // The current warp has waited for its tcgen05.ld or .st.
  virtual void tensor_waited(Actor operation) = 0;
  // The current thread executes tcgen05.fence::before_thread_sync, ::after_thread_sync.
  virtual void tensor_before_fence() = 0;
  virtual void tensor_after_fence() = 0;
  // The range, allocated at `pc`, holds nothing; or the current thread frees it, and everything
  // must be over.
  virtual void tensor_allocated(const TensorRange& range, void* pc) = 0;
  virtual void tensor_freed(const TensorRange& range, void* pc) = 0;
  // Variables of the current thread that tcgen05.ld at `pc` will write at an unknown time; the
  // wait.
  virtual void registers_pending(const uint32_t* variable, void* pc) = 0;
  virtual void registers_arrived(const uint32_t* variable) = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local TensorTracer* tensor_tracer = nullptr;

}  // namespace cookbook::simt
