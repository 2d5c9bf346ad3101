// SPDX-License-Identifier: MIT
// What the asynchronous units remember about a thread, a block and a group.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// Where in the kernel the unit's function was called.
#define COOKBOOK_SIMT_PC __builtin_return_address(0)

struct CpAsyncCopy {
  char* smem;
  const char* gmem;
  uint8_t bytes;
  uint8_t valid_bytes;
  bool landed;
  Actor actor;
};

struct CpAsyncState {
  std::deque<CpAsyncCopy> copies;  // not yet waited for, in order of issue
  uint64_t first = 0;              // number of copies.front()
  std::deque<uint64_t> groups;     // for each group not yet waited for: number of its last copy + 1
  uint64_t end() const { return first + copies.size(); }
};

struct BulkStore;

struct BulkStoreState {
  std::vector<std::shared_ptr<BulkStore>> open;
  std::deque<std::vector<std::shared_ptr<BulkStore>>> groups;
};

// A committed group: operations [begin, end) of the warpgroup's wgmma.
struct WgmmaBatch {
  uint64_t begin, end, number;
};

struct WgmmaThreadState {
  uint64_t issued = 0;     // wgmma operations
  uint64_t committed = 0;  // wgmma operations
  uint64_t batches = 0;
  bool fenced = false;
  std::deque<WgmmaBatch> pending;
};

// What a thread has issued to the tensor core of sm_100: executed in this order.
struct Tcgen05State {
  std::deque<std::function<void()>> queue;
  // For the tracer: what later operations of the thread are ordered after, by accumulator and
  // shape.
  std::map<std::array<uint32_t, 4>, char> chains;
  char copies = 0, products = 0, all = 0;
};

struct ThreadUnits : UnitState {
  CpAsyncState cp_async;
  BulkStoreState bulk;
  WgmmaThreadState wgmma;
  std::vector<const uint32_t*> tmem_loads;  // traced mode: variables of loads not waited for
  std::unique_ptr<Tcgen05State> tcgen05;
};

struct Warpgroup;
struct TensorMemory;

struct BlockUnits : UnitState {
  BlockUnits();
  ~BlockUnits() override;
  std::vector<std::unique_ptr<Warpgroup>> warpgroups;
  std::unique_ptr<TensorMemory> tensor_memory;
  // What a warpgroup wanted at its n-th setmaxnreg: the first of its threads that came.
  struct RegisterRequest {
    const Thread* first;
    uint32_t registers;  // per thread
    void* pc;
  };
  std::vector<std::vector<RegisterRequest>> register_requests;  // of each warpgroup
  std::vector<uint32_t> register_calls;                         // of each thread
};

struct Mbarrier : Waitable {
  uint64_t* address = nullptr;
  uint32_t count = 0;    // arrivals a phase
  uint32_t pending = 0;  // arrivals
  int64_t pending_bytes = 0;
  uint32_t phase = 0;  // number of completed phases
  std::vector<Thread*> waiting;
  const Block* owner = nullptr;
  // For the tracer: what even and odd phases release, to waits at the scope of the block and, in a
  // cluster of several blocks, to waits at its scope.
  char phase_object[2] = {}, cluster_object[2] = {};
  uint32_t static_address = 0;  // where it is, unless that is dynamic shared memory of its owner

  // "at ... (phase P: A of C arrivals and B bytes pending)"
  std::string describe() const override;
};

struct GroupUnits : UnitState {
  std::unordered_map<const uint64_t*, std::unique_ptr<Mbarrier>> mbarriers;
  bool clc_declined = false;  // a thread has seen that a request for another cluster failed
};

ThreadUnits& thread_units(Thread& thread);
BlockUnits& block_units(Block& block);
GroupUnits& group_units(Group& group);

// True if the current schedule lets something happen now that it could also do later.
bool happens_now();

// Fails unless `pointer` is in shared memory of the current block; `what` begins the message.
void require_own_shared(const void* pointer, const char* what, void* pc);
// Fails unless `pointer` is in the thread's own local memory, as registers are: an access elsewhere
// would not be counted.
void require_registers(const void* pointer, const char* what, void* pc);
// The pointer, in block `rank` of the current cluster, at the same offset as `pointer` has in its
// block. Fails if there is no such block, or no longer.
void* map_to_rank(const void* pointer, uint32_t rank, const char* what, void* pc);

// The barrier at `bar`, which must be initialised; `what` begins the message if it is not.
Mbarrier& find_mbarrier(Group& group, const uint64_t* bar, const char* what, void* pc);
// What signals a barrier: a thread, at the scope of its block or of the cluster; a bulk copy, whose
// data is visible to every wait; or a st.async.
enum class Signal : uint8_t { block, cluster, bulk_copy, store_async };
// Tells the tracer that `who`, of block `from`, publishes what it did to those who wait.
void mbarrier_release(Mbarrier& barrier, Actor who, const Block& from, Signal signal);
// One arrival, or `bytes` bytes that have landed for operation `actor` of block `from`.
void mbarrier_complete_arrival(Mbarrier& barrier, uint32_t count, void* pc);
void mbarrier_complete_bytes(Mbarrier& barrier, uint32_t bytes, Actor actor, const Block& from,
                             Signal signal, void* pc);

// Fails if a barrier expects other bytes than its copies have; everything has arrived.
void mbarrier_group_end(Group& group);

// Fails if a part of a warpgroup came to a setmaxnreg; every thread has exited.
void registers_group_end(Group& group);

// Called at a thread's exit.
void cp_async_thread_exit(Thread& thread);
void bulk_thread_exit(Thread& thread);

}  // namespace cookbook::simt
