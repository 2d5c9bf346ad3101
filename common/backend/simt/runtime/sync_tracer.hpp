// SPDX-License-Identifier: MIT
// What the tracer observes of synchronisation.
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// What a release makes known to the thread that acquires. `reads`: that earlier reads are complete,
// but no ordinary write (a release at the scope of a block, for another block of the cluster).
// `starts`: that the block has started, and what fence.mbarrier_init covered
// (barrier.cluster.arrive.relaxed).
enum class Knowledge : uint8_t { all, reads, starts };

struct SyncTracer {
  // All live threads of the block have synchronised with each other.
  virtual void full_barrier(Block& block) = 0;
  // These threads of the block have synchronised with each other (named barrier, __syncwarp).
  virtual void join(Block& block, const uint16_t* thread_ids, int count) = 0;
  // Everything `who` has done so far happens before what a later acquirer of the object does.
  virtual void release(const void* object, Actor who, Knowledge what = Knowledge::all) = 0;
  virtual void acquire(const void* object, Actor who) = 0;
  // The current thread executes `operation`, which `first` executes elsewhere. Places on one line
  // of the source are one place.
  virtual void different_places(const char* operation, const Thread& first, void* first_pc,
                                void* pc) = 0;
  // All live threads of the block have come to the __syncthreads at `pc`; some have exited.
  virtual void passed_without_exited(const Block& block, void* pc) = 0;
  // The current thread reads the value of lane `source`, which does not take part.
  virtual void lane_absent(uint32_t source, uint32_t mask, void* pc) = 0;
  // The current thread comes to `operation`, which its warp executes together, and `alone`, a lane
  // of that warp, acted or waited alone at `alone_pc` before.
  virtual void diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                        void* pc) = 0;
};
// Of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local SyncTracer* sync_tracer = nullptr;

}  // namespace cookbook::simt
