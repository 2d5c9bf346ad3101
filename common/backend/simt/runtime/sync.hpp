// SPDX-License-Identifier: MIT
// Where threads meet: barriers of a block, of a cluster, and the collective operations of a warp.
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// What the shuffle at `pc` returns of a lane that does not take part: on a GPU it is undefined.
// Null: all ones.
extern uint64_t (*absent_lane_value)(void* pc);

// ---- meetings of a warp ----

// Waits until every lane of `mask` that has not exited came with the same mask and operation, then
// returns the meeting, whose `value[lane]` holds what each brought. Call finish_meeting() after
// reading. Fails if the caller is not in its own mask.
// exchange: a shuffle or a vote. aligned: `.sync.aligned` of PTX.
enum class Meet : uint8_t { plain, exchange, orders_memory, aligned };
Rendezvous& meet(uint32_t mask, uint64_t value, const char* operation, Meet kind, void* pc);
void finish_meeting(Rendezvous& meeting);

// ---- barriers ----

// bar.sync / bar.arrive. `threads` = 0 means all threads of the block (exited ones count as
// arrived).
void barrier_sync(unsigned id, unsigned threads, const char* operation, void* pc);
void barrier_arrive(unsigned id, unsigned threads, void* pc);

// barrier.cluster.arrive / .wait over all threads of the group (exited ones count as arrived).
// `releases`: without .relaxed.
void cluster_barrier_arrive(void* pc, bool releases = true);
void cluster_barrier_wait(void* pc);

// For the scheduler: releases those who waited only for the thread that has just exited.
void release_after_exit(Thread& thread);

}  // namespace cookbook::simt
