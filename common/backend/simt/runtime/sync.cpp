// SPDX-License-Identifier: MIT
#include "common/backend/simt/runtime/sync.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/backend/device_bytes.hpp"
#include "common/backend/simt/language/language.hpp"
#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch_tracer.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/worker.hpp"

namespace cookbook::simt {

uint64_t (*absent_lane_value)(void* pc) = nullptr;

namespace {

// ---- barriers of a block ----

void tell_tracer(Block& block, NamedBarrier& barrier, bool full) {
  if (!sync_tracer) return;
  if (full) {
    sync_tracer->full_barrier(block);
    if (block.alive < block.thread_count && !barrier.places.empty()) {
      sync_tracer->passed_without_exited(block, barrier.places[0].pc);
    }
  } else if (!barrier.has_arrivals) {
    sync_tracer->join(block, barrier.participants.data(),
                      static_cast<int>(barrier.participants.size()));
  } else {
    // Threads that came by bar.arrive released when they came, and are not ordered after the
    // others.
    for (uint16_t id : barrier.waiting) sync_tracer->release(&barrier, block.threads[id].actor);
    for (uint16_t id : barrier.waiting) sync_tracer->acquire(&barrier, block.threads[id].actor);
  }
}

bool is_complete(const Block& block, const NamedBarrier& barrier) {
  return barrier.arrived >= (barrier.expected ? barrier.expected : block.alive);
}

// Wakes all waiting threads except the current one.
void complete(Block& block, NamedBarrier& barrier) {
  tell_tracer(block, barrier, barrier.expected == 0);
  const uint32_t self = current_thread && current_thread->block == &block &&
                                current_thread->state == ThreadState::ready
                            ? current_thread->id
                            : ~0u;
  for (uint16_t id : barrier.waiting) {
    if (id != self) make_ready(&block.threads[id]);
  }
  barrier.vote_result = barrier.vote_count;
  barrier.begin_phase();
}

// All threads of a block execute the same __syncthreads; those of a warp the same named barrier.
void check_place(const Block& block, NamedBarrier& barrier, unsigned id, void* pc) {
  barrier.places.resize(block.warp_count);
  const Thread& self = *current_thread;
  NamedBarrier::Place& place = barrier.places[id == 0 ? 0 : self.id / kWarpSize];
  if (place.first == nullptr) {
    place = {&self, pc};
  } else if (place.pc != pc) {
    const char* operation = id == 0 ? "__syncthreads" : "a named barrier";
    sync_tracer->different_places(operation, *place.first, place.pc, pc);
  }
}

NamedBarrier& join_phase(Block& block, unsigned id, unsigned threads, void* pc) {
  if (id >= kNamedBarriers) {
    fail_at(pc, "named barrier {} does not exist: ids are 0..{}", id, kNamedBarriers - 1);
  }
  if (threads % kWarpSize != 0 || threads > block.warp_count * kWarpSize) {
    fail_at(pc, "named barrier {} for {} threads: must be a multiple of 32, at most the block's {}",
            id, threads, block.thread_count);
  }
  NamedBarrier& barrier = block.barriers[id];
  if (barrier.arrived != 0 && barrier.expected != threads) {
    fail_at(pc, "named barrier {}: this thread expects {} threads, an earlier one {} (0 means all)",
            id, threads, barrier.expected);
  }
  barrier.expected = threads;
  ++barrier.arrived;
  // A number of threads means whole warps: the lanes that a partial last warp lacks come with its
  // last lane.
  const Warp& warp = *current_thread->warp;
  const auto lanes = static_cast<uint32_t>(__builtin_popcount(warp.lanes));
  if (threads != 0 && current_thread->lane + 1 == lanes) barrier.arrived += kWarpSize - lanes;
  if (sync_tracer) check_place(block, barrier, id, pc);
  barrier.participants.push_back(static_cast<uint16_t>(current_thread->id));
  return barrier;
}

// ---- barrier of a cluster ----

void complete_cluster_barrier(Group& group) {
  Group::ClusterBarrier& barrier = group.cluster_barrier;
  barrier.arrived = 0;
  ++barrier.phase;
  for (Thread* thread : barrier.waiting) make_ready(thread);
  barrier.waiting.clear();
}

Group::ClusterBarrier& cluster_barrier(void* pc) {
  Group& group = *current_thread->block->group;
  if (group.block_count != group.launch->cluster) {
    fail("cluster barrier in a cooperative launch", pc);
  }
  return group.cluster_barrier;
}

// ---- meetings of a warp ----

Rendezvous& find_rendezvous(Warp& warp, uint32_t mask) {
  Rendezvous* unused = nullptr;
  for (uint32_t i = 0; i < warp.rendezvous_used; ++i) {
    Rendezvous& entry = warp.rendezvous[i];
    if (entry.arrived != 0) {
      if (entry.mask == mask) return entry;
    } else if (entry.unread == 0 && !unused) {
      unused = &entry;
    }
  }
  if (!unused) unused = &warp.rendezvous[warp.rendezvous_used++];
  return *unused;
}

void complete_meeting(Warp& warp, Rendezvous& meeting, Meet kind) {
  meeting.participants = meeting.unread = meeting.arrived;
  meeting.arrived = 0;
  --warp.rendezvous_open;
  if (kind == Meet::orders_memory && sync_tracer) {
    uint16_t ids[kWarpSize];
    int count = 0;
    for (uint32_t rest = meeting.participants; rest != 0; rest &= rest - 1) {
      ids[count++] = static_cast<uint16_t>(warp.threads[__builtin_ctz(rest)].id);
    }
    sync_tracer->join(*warp.block, ids, count);
  }
  uint32_t blocked = meeting.participants;
  for (uint32_t rest = blocked; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (warp.threads[lane].state != ThreadState::blocked) blocked &= ~(1u << lane);
  }
  if (kind == Meet::exchange || kind == Meet::aligned) {
    make_lanes_ready(warp, blocked);
    return;
  }
  for (uint32_t rest = blocked; rest != 0; rest &= rest - 1) {
    make_ready(&warp.threads[__builtin_ctz(rest)]);
  }
}

constexpr const char* kSyncWarp = "__syncwarp";

// The lanes that take part and their values; the guard ends the meeting for this lane.
class Meeting {
 public:
  Meeting(uint32_t mask, uint64_t value, const char* operation, void* pc)
      : meeting_(meet(mask, value, operation, Meet::exchange, pc)) {}
  Meeting(const Meeting&) = delete;
  ~Meeting() { finish_meeting(meeting_); }
  uint32_t participants() const { return meeting_.participants; }
  uint64_t value(uint32_t lane) const { return meeting_.value[lane]; }
  // The participants that came with this value.
  uint32_t lanes_with(uint64_t value) const {
    uint32_t lanes = 0;
    for (uint32_t rest = participants(); rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      if (meeting_.value[lane] == value) lanes |= 1u << lane;
    }
    return lanes;
  }

 private:
  Rendezvous& meeting_;
};

}  // namespace

void barrier_sync(unsigned id, unsigned threads, const char* operation, void* pc) {
  Thread& self = *current_thread;
  Block& block = *self.block;
  NamedBarrier& barrier = join_phase(block, id, threads, pc);
  barrier.waiting.push_back(static_cast<uint16_t>(self.id));
  if (is_complete(block, barrier)) {
    complete(block, barrier);
  } else {
    block_current(operation, pc);
  }
  lane_met();
}

void barrier_arrive(unsigned id, unsigned threads, void* pc) {
  Thread& self = *current_thread;
  Block& block = *self.block;
  if (threads == 0) fail("bar.arrive needs a number of threads", pc);
  NamedBarrier& barrier = join_phase(block, id, threads, pc);
  barrier.has_arrivals = true;
  if (sync_tracer) sync_tracer->release(&barrier, self.actor);
  if (is_complete(block, barrier)) complete(block, barrier);
}

void cluster_barrier_arrive(void* pc, bool releases) {
  Thread& self = *current_thread;
  Group& group = *self.block->group;
  Group::ClusterBarrier& barrier = cluster_barrier(pc);
  if (self.cluster_arrival != 0) {
    fail("second barrier.cluster.arrive without a wait", pc);
  }
  self.cluster_arrival = barrier.phase + 1;
  if (sync_tracer) {
    sync_tracer->release(&barrier.objects[barrier.phase % 2], self.actor,
                         releases ? Knowledge::all : Knowledge::starts);
  }
  if (++barrier.arrived == group.alive) complete_cluster_barrier(group);
}

void cluster_barrier_wait(void* pc) {
  Thread& self = *current_thread;
  Group::ClusterBarrier& barrier = cluster_barrier(pc);
  if (self.cluster_arrival == 0) fail("barrier.cluster.wait without an arrive", pc);
  while (self.cluster_arrival == barrier.phase + 1) {
    barrier.waiting.push_back(&self);
    block_current("barrier.cluster.wait", pc);
  }
  if (sync_tracer)
    sync_tracer->acquire(&barrier.objects[(self.cluster_arrival - 1) % 2], self.actor);
  self.cluster_arrival = 0;
  lane_met();
}

Rendezvous& meet(uint32_t mask, uint64_t value, const char* operation, Meet kind, void* pc) {
  Thread& self = *current_thread;
  Warp& warp = *self.warp;
  if (!(mask >> self.lane & 1)) {
    fail_at(pc, "{}: lane {} is not in its own mask 0x{:08x}", operation, self.lane, mask);
  }
  Rendezvous& meeting = find_rendezvous(warp, mask);
  if (meeting.arrived == 0) {
    meeting.mask = mask;
    meeting.operation = operation;
    meeting.first = self.lane;
    meeting.pc = pc;
    ++warp.rendezvous_open;
  } else if (meeting.operation != operation && std::strcmp(meeting.operation, operation) != 0) {
    fail_at(pc, "lanes of a warp meet in different operations: {} here, {} elsewhere", operation,
            meeting.operation);
  }
  if (sync_tracer && meeting.arrived != 0) {
    const Thread& first = warp.threads[meeting.first];
    // bar.warp.sync counts lanes, wherever they are; everything else is one instruction.
    if (meeting.pc != pc && std::strcmp(operation, kSyncWarp) != 0) {
      sync_tracer->different_places(operation, first, meeting.pc, pc);
    }
    if (kind == Meet::aligned) require_converged(first.path, first, operation, pc);
  }
  meeting.value[self.lane] = value;
  meeting.arrived |= 1u << self.lane;
  if (meeting.arrived == (mask & warp.alive)) {
    complete_meeting(warp, meeting, kind);
  } else {
    block_current(operation, pc);
  }
  if ((mask & warp.alive) == warp.alive) lane_met();
  return meeting;
}

void finish_meeting(Rendezvous& meeting) { meeting.unread &= ~(1u << current_thread->lane); }

void release_after_exit(Thread& thread) {
  Block& block = *thread.block;
  Warp& warp = *thread.warp;
  if (block.alive != 0) {
    for (NamedBarrier& barrier : block.barriers) {
      if (barrier.arrived != 0 && barrier.expected == 0 && is_complete(block, barrier)) {
        complete(block, barrier);
      }
    }
  }
  if (warp.rendezvous_open != 0) {
    for (uint32_t i = 0; i < warp.rendezvous_used; ++i) {
      Rendezvous& meeting = warp.rendezvous[i];
      if (meeting.arrived != 0 && meeting.arrived == (meeting.mask & warp.alive)) {
        complete_meeting(
            warp, meeting,
            std::strcmp(meeting.operation, kSyncWarp) == 0 ? Meet::orders_memory : Meet::plain);
      }
    }
  }
  Group& group = *block.group;
  if (group.cluster_barrier.arrived != 0 || !group.cluster_barrier.waiting.empty()) {
    if (thread.cluster_arrival == group.cluster_barrier.phase + 1) --group.cluster_barrier.arrived;
    if (group.alive != 0 && group.cluster_barrier.arrived == group.alive) {
      complete_cluster_barrier(group);
    }
  }
}

namespace {

// How many threads of the block came with `counts`.
uint32_t vote_of_block(bool counts, const char* operation, void* pc) {
  NamedBarrier& barrier = current_thread->block->barriers[0];
  barrier.vote_count += counts;
  barrier_sync(0, 0, operation, pc);
  return barrier.vote_result;
}

}  // namespace

// ---- what kernels call (language.hpp) ----

void sync_threads() { barrier_sync(0, 0, "__syncthreads", __builtin_return_address(0)); }

int sync_threads_count(bool predicate) {
  return static_cast<int>(
      vote_of_block(predicate, "__syncthreads_count", __builtin_return_address(0)));
}

bool sync_threads_and(bool predicate) {
  return vote_of_block(!predicate, "__syncthreads_and", __builtin_return_address(0)) == 0;
}

bool sync_threads_or(bool predicate) {
  return vote_of_block(predicate, "__syncthreads_or", __builtin_return_address(0)) != 0;
}

void sync_warp(uint32_t mask) {
  finish_meeting(meet(mask, 0, kSyncWarp, Meet::orders_memory, __builtin_return_address(0)));
}

uint64_t shuffle(uint32_t mask, uint64_t value, uint32_t source) {
  void* const pc = __builtin_return_address(0);
  const Meeting meeting(mask, value, "__shfl_sync", pc);
  if (meeting.participants() >> source & 1) return meeting.value(source);
  if (sync_tracer) sync_tracer->lane_absent(source, mask, pc);
  return absent_lane_value ? absent_lane_value(pc) : ~uint64_t{0};
}

Vote vote(uint32_t mask, bool predicate) {
  const Meeting meeting(mask, predicate, "warp vote", __builtin_return_address(0));
  return {meeting.lanes_with(1), meeting.participants()};
}

uint32_t match_any(uint32_t mask, uint64_t value) {
  const Meeting meeting(mask, value, "__match_any_sync", __builtin_return_address(0));
  return meeting.lanes_with(value);
}

uint32_t match_all(uint32_t mask, uint64_t value, int* all_equal) {
  const Meeting meeting(mask, value, "__match_all_sync", __builtin_return_address(0));
  *all_equal = meeting.lanes_with(value) == meeting.participants();
  return *all_equal ? meeting.participants() : 0;
}

uint32_t reduce(uint32_t mask, uint32_t value, ReduceOp op) {
  void* const pc = __builtin_return_address(0);
  require_capability(80, "__reduce_sync", pc);
  const Meeting meeting(mask, value, "__reduce_sync", pc);
  uint32_t result = value;
  for (uint32_t rest = meeting.participants() & ~(1u << current_thread->lane); rest != 0;
       rest &= rest - 1) {
    const auto other =
        static_cast<uint32_t>(meeting.value(static_cast<uint32_t>(__builtin_ctz(rest))));
    const auto a = static_cast<int32_t>(result), b = static_cast<int32_t>(other);
    switch (op) {
      case ReduceOp::add: result += other; break;
      case ReduceOp::min_signed: result = static_cast<uint32_t>(b < a ? b : a); break;
      case ReduceOp::max_signed: result = static_cast<uint32_t>(a < b ? b : a); break;
      case ReduceOp::min_unsigned: result = other < result ? other : result; break;
      case ReduceOp::max_unsigned: result = result < other ? other : result; break;
      case ReduceOp::bit_and: result &= other; break;
      case ReduceOp::bit_or: result |= other; break;
      case ReduceOp::bit_xor: result ^= other; break;
    }
  }
  return result;
}

// Which lanes are active together is the hardware's choice. The traced build knows which lanes run
// the same basic block. The plain build runs lane by lane, and the calling lane alone is a valid
// answer, too.
uint32_t active_mask() {
  return launch_tracer && current_thread->block->group->traced
             ? current_thread->converged & current_thread->warp->alive
             : 1u << current_thread->lane;
}

uint32_t lane_id() { return current_thread->lane; }

void nap() { yield_current(__builtin_return_address(0)); }

void trap() { fail("__trap()", __builtin_return_address(0)); }

}  // namespace cookbook::simt
