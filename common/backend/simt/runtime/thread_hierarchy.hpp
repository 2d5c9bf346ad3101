// SPDX-License-Identifier: MIT
// Threads, warps, blocks and groups as they run. Kernels never see it.
//
// A CUDA thread is a fiber. Blocks that must be resident together form a *group* (one block; a
// cluster's blocks; the whole grid of a cooperative launch) and all fibers of a group run, one at a
// time, on one OS thread, the *worker*. So the runtime needs no OS atomics for them: only global
// memory is touched by several workers at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/simt/language/vector_types.hpp"

namespace cookbook::simt {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kNamedBarriers = 16;

// State that the asynchronous units hang on a thread, a block or a group. The core keeps the object
// from one block to the next (Thread objects are reused), so units reset it in their begin
// callbacks; an abandoned launch destroys it.
struct UnitState {
  virtual ~UnitState() = default;
};

struct Block;
struct Group;
struct Warp;

// Something that a thread waits for and that has more to say than its name. It is asked only when a
// report is written, perhaps from another OS thread.
struct Waitable {
  virtual ~Waitable() = default;
  virtual std::string describe() const = 0;
};

enum class ThreadState : uint8_t { ready, blocked, parked, exited };

// Who performed an access or a synchronisation, for the tracer. Threads of a group are 0 .. n-1
// (Thread::actor); operations of asynchronous units are negative, each from
// AsyncTracer::async_begin().
using Actor = int32_t;

// What a lane did that other lanes of its warp may not have done, since the warp last met.
// `waited`: waits that may have taken time, after which the lane may be behind until the warp
// meets.
struct LanePath {
  struct Places {
    uint64_t hash = 0;  // of all of them
    uint32_t count = 0;
    std::array<void*, 4> first{};
    void clear() { hash = count = 0; }
  };
  Places acted, waited;
};

// What switching and reconvergence touch comes first, in one line of a cache: the threads of a
// large block do not fit in the first-level cache.
struct alignas(64) Thread {
  void* stack_pointer = nullptr;  // while it does not run
  uint3 thread_idx{};
  uint32_t lane = 0;
  Block* block = nullptr;
  Warp* warp = nullptr;
  ThreadState state = ThreadState::ready;
  bool spinning = false;     // yielded in a spin loop: lets the other lanes of its warp go first
  bool block_scope = false;  // its atomics are atomicAdd_block() and the like
  bool preempted = false;    // interrupted, so that others run
  // traced mode only
  uint32_t call_depth = 0;    // kept by the tracer (function entry and exit)
  uintptr_t basic_block = 0;  // pc of the basic block it is parked at
  uint32_t parked_at = 0;     // low bits of Warp::instruction when it parked: for fairness
  uint32_t converged = 0;     // lanes released together with this one

  uint32_t id = 0;                      // linear within the block
  Actor actor = 0;                      // linear within the group
  const char* stack_top = nullptr;      // one past the end of its stack
  const char* waits_in = nullptr;       // e.g. "__syncthreads", while blocked
  const Waitable* waits_for = nullptr;  // what that is, where the name does not say it all
  void* wait_pc = nullptr;              // where in the kernel it waits
  uint32_t cluster_arrival = 0;  // 1 + phase of the cluster barrier it arrived at; 0: it waited
  LanePath path;                 // traced mode only
  uintptr_t block_before = 0;    // traced mode only: the basic block before that one
  std::unique_ptr<UnitState> unit_state;
};
static_assert(offsetof(Thread, id) == 64);

// One meeting of lanes: __syncwarp, a shuffle, a vote. It is free again when every lane has taken
// its result.
struct Rendezvous {
  uint32_t mask = 0;
  uint32_t arrived = 0;
  uint32_t participants = 0;  // of the last completed meeting, ...
  uint32_t unread = 0;        // ... of which these have yet to take their result
  const char* operation = nullptr;
  uint32_t first = 0;  // lane that came first ...
  void* pc = nullptr;  // ... and where
  uint64_t value[kWarpSize];
};

struct Warp {
  Block* block = nullptr;
  Thread* threads = nullptr;  // lane 0
  uint32_t lanes = 0;         // mask of lanes that exist
  uint32_t alive = 0;         // ... that have not exited
  uint32_t running = 0;       // number of lanes that are ready (or current)
  uint32_t parked = 0;        // mask of lanes parked at a basic block (traced mode)
  // Where and when the first of them parked; whether all others parked there, too, and none spins.
  uintptr_t basic_block = 0;
  uint32_t call_depth = 0, parked_at = 0;
  bool parked_together = false;
  uint64_t starvation_limit = 0;  // basic blocks that a parked lane may be passed over
  uint64_t instruction = 0;       // counts releases of basic blocks: accesses with the same pc and
                                  // instruction are one request
  uint64_t basic_blocks = 0;      // statistics: basic blocks issued by this warp in this block ...
  uint64_t active_lanes = 0;      // ... and the lanes that took part, summed
  std::array<Rendezvous, kWarpSize> rendezvous;  // a lane is in one at most, so these suffice
  uint32_t rendezvous_used = 0;                  // entries beyond were never used
  uint32_t rendezvous_open = 0;                  // number of meetings that wait for lanes
  std::unique_ptr<UnitState> unit_state;
};

struct NamedBarrier {
  uint32_t arrived = 0;
  uint32_t expected = 0;      // of the phase under way; 0: all threads of the block
  bool has_arrivals = false;  // by bar.arrive, in this phase
  struct Place {
    const Thread* first = nullptr;
    void* pc = nullptr;
  };
  // Traced mode: who came first in this phase, and where. Of __syncthreads only the first entry is
  // used, of named barriers one for each warp.
  std::vector<Place> places;
  std::vector<uint16_t> waiting;             // thread ids to wake
  std::vector<uint16_t> participants;        // thread ids that arrived or wait
  uint32_t vote_count = 0, vote_result = 0;  // for __syncthreads_count / _and / _or

  void begin_phase() {
    arrived = expected = vote_count = 0;
    has_arrivals = false;
    places.clear();
    waiting.clear();
    participants.clear();
  }
};

struct Block {
  uint3 block_idx{};
  uint32_t index = 0;  // within the group
  uint32_t rank = 0;   // within its cluster; 0 without clusters
  Group* group = nullptr;
  uint32_t thread_count = 0;
  uint32_t alive = 0;          // threads that have not exited
  bool previous_ended = true;  // false: a dependent launch, and no wait_for_previous_launch yet
  Thread* threads = nullptr;   // thread_count of them
  Warp* warps = nullptr;
  uint32_t warp_count = 0;
  std::array<NamedBarrier, kNamedBarriers> barriers;
  char* shared = nullptr;   // dynamic shared memory, 1024-byte aligned
  size_t shared_bytes = 0;  // what the launch asked for
  std::unique_ptr<UnitState> unit_state;
};

// What launch() was asked for; the same for every group.
struct Launch {
  void* kernel = nullptr;  // the kernel's function pointer: see kernel_name()
  uint3 grid{}, block{};
  size_t shared_bytes = 0;
  uint32_t cluster = 1;
  uint3 cluster_shape{1, 1, 1};
  bool cooperative = false;
  bool dependent = false;
  uint32_t blocks_per_group = 1;
  uint64_t group_count = 0;
  void (*invoke)(void* kernel, const void* arguments) = nullptr;
  const void* arguments =
      nullptr;  // a GPU's constant bank: reads of this range are not memory traffic
  size_t argument_bytes = 0;
};

struct Group {
  uint64_t id = 0;  // linear within the launch
  const Launch* launch = nullptr;
  uint32_t block_count = 0;
  std::vector<std::unique_ptr<Block>> blocks;  // the first block_count are in use
  uint32_t thread_count = 0;                   // of all blocks
  bool traced = true;  // a launch may be too large to look at every access: TraceBudget
  uint32_t alive = 0;
  struct ClusterBarrier {  // barrier.cluster: one phase at a time
    uint32_t arrived = 0;  // threads that have not exited
    uint32_t phase = 0;    // completed phases
    std::vector<Thread*> waiting;
    char objects[2];  // for SyncTracer::release and acquire, by parity of the phase
  } cluster_barrier;
  std::unique_ptr<UnitState> unit_state;
};

// The index of the `linear`-th block or thread of `extent`: x counts fastest.
inline uint3 index_in(const uint3& extent, uint64_t linear) {
  return {static_cast<unsigned>(linear % extent.x),
          static_cast<unsigned>(linear / extent.x % extent.y),
          static_cast<unsigned>(linear / extent.x / extent.y)};
}

// The index of the `linear`-th block in the order in which blocks start: cluster by cluster.
inline uint3 block_index_in(const Launch& launch, uint64_t linear) {
  const uint3 &grid = launch.grid, &shape = launch.cluster_shape;
  const uint3 cluster =
      index_in({grid.x / shape.x, grid.y / shape.y, grid.z / shape.z}, linear / launch.cluster);
  const uint3 in_cluster = index_in(shape, linear % launch.cluster);
  return {cluster.x * shape.x + in_cluster.x, cluster.y * shape.y + in_cluster.y,
          cluster.z * shape.z + in_cluster.z};
}

struct Worker;
// The worker of this OS thread and the thread it runs; null outside of launch().
extern __thread Worker* current_worker;
extern __thread Thread* current_thread;

// While one lives, no thread runs here. What looks up lines under a lock runs code of the standard
// library, of which the linker may have taken a copy with the tracer's hooks: they must not switch
// threads then.
class NoThread {
 public:
  NoThread() : thread_(std::exchange(current_thread, nullptr)) {}
  ~NoThread() { current_thread = thread_; }
  NoThread(const NoThread&) = delete;
  NoThread& operator=(const NoThread&) = delete;

 private:
  Thread* thread_;
};

}  // namespace cookbook::simt
