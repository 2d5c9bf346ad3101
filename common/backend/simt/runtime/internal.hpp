// SPDX-License-Identifier: MIT
// Inside the SIMT runtime: what the scheduler, the asynchronous units and the tracer share. Kernels
// never see it.
//
// A CUDA thread is a fiber. Blocks that must be resident together form a *group* (one block; a
// cluster's blocks; the whole grid of a cooperative launch) and all fibers of a group run, one at a
// time, on one OS thread, the *worker*. So nothing in this file needs OS atomics: only global
// memory is touched by several workers at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/backend/simt/language/vector_types.hpp"
#include "common/backend/simt/runtime/launch.hpp"

namespace cookbook::simt {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr unsigned kNamedBarriers = 16;
inline constexpr size_t kStackBytes = 256 << 10;  // virtual; only touched pages cost memory
inline constexpr size_t kSharedAlignment =
    1024;  // of dynamic shared memory: what SWIZZLE_128B needs
inline constexpr size_t kSharedPadBytes =
    1024;  // 0xFF after the dynamic shared memory, checked at block end
inline constexpr uint32_t kDynamicSharedAddress =
    0x400;  // __cvta_generic_to_shared of its first byte
// Behind all dynamic shared memory, and the first address that a wgmma descriptor cannot hold.
inline constexpr uint32_t kStaticSharedAddress = 0x40000;
inline constexpr size_t kMaxDynamicSharedBytes =
    kStaticSharedAddress - kDynamicSharedAddress - kSharedPadBytes;

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

// What a release makes known to the thread that acquires. `reads`: that earlier reads are complete,
// but no ordinary write (a release at the scope of a block, for another block of the cluster).
// `starts`: that the block has started, and what fence.mbarrier_init covered
// (barrier.cluster.arrive.relaxed).
enum class Knowledge : uint8_t { all, reads, starts };

enum class ThreadState : uint8_t { ready, blocked, parked, exited };

// Who performed an access or a synchronisation, for the tracer. Threads of a group are 0 .. n-1
// (Thread::actor); operations of asynchronous units are negative, each from new_async_actor().
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
  bool spinning = false;  // yielded in a spin loop: lets the other lanes of its warp go first
  // traced mode only
  uint32_t call_depth = 0;    // kept by the tracer (function entry and exit)
  uintptr_t basic_block = 0;  // pc of the basic block it is parked at
  uint32_t parked_at = 0;     // low bits of Warp::instruction when it parked: for fairness
  uint32_t converged = 0;     // lanes released together with this one

  uint32_t id = 0;                      // linear within the block
  Actor actor = 0;                      // linear within the group
  const char* waits_in = nullptr;       // e.g. "__syncthreads", while blocked
  const Waitable* waits_for = nullptr;  // what that is, where the name does not say it all
  void* wait_pc = nullptr;              // where in the kernel it waits
  uint32_t cluster_arrival = 0;  // 1 + phase of the cluster barrier it arrived at; 0: it waited
  // traced mode only
  uint32_t flag_clock = 0;          // its clock when it was about to execute ...
  const void* flag_read = nullptr;  // ... this volatile load, for the tracer
  LanePath path;
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
  Thread* threads = nullptr;      // lane 0
  uint32_t lanes = 0;             // mask of lanes that exist
  uint32_t alive = 0;             // ... that have not exited
  uint32_t running = 0;           // number of lanes that are ready (or current)
  uint32_t parked = 0;            // mask of lanes parked at a basic block (traced mode)
  uint64_t starvation_limit = 0;  // basic blocks that a parked lane may be passed over
  uint64_t instruction = 0;       // counts releases of basic blocks: accesses with the same pc and
                                  // instruction are one request
  uint64_t basic_blocks = 0;      // statistics: basic blocks issued by this warp in this block ...
  uint64_t active_lanes = 0;      // ... and the lanes that took part, summed
  std::array<Rendezvous, kWarpSize> rendezvous;  // a lane is in one at most, so these suffice
  uint32_t rendezvous_used = 0;                  // entries beyond were never used
  uint32_t rendezvous_open = 0;                  // number of meetings that wait for lanes
  alignas(64) char scratch[16384];               // for collective units (mma, wmma, ldmatrix)
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
  bool traced = true;  // a launch may be too large to look at every access: set_trace_budget()
  uint32_t alive = 0;
  struct ClusterBarrier {  // barrier.cluster: one phase at a time
    uint32_t arrived = 0;  // threads that have not exited
    uint32_t phase = 0;    // completed phases
    std::vector<Thread*> waiting;
    char objects[2];  // for Hooks::release and acquire, by parity of the phase
  } cluster_barrier;
  std::unique_ptr<UnitState> unit_state;
};

struct Worker;
// The worker of this OS thread and the thread it runs; null outside of launch().
extern __thread Worker* current_worker;
extern __thread Thread* current_thread;

// ---- scheduling ----

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

// Abandons the launch: launch() throws KernelError. The message is completed with kernel, block and
// thread, and with file:line of `pc` if that is given.
[[noreturn]] void fail(const std::string& message, void* pc = nullptr);
[[noreturn]] void fail(Fault fault, const std::string& message, void* pc);

std::string triple(uint3 v);  // "(1,2,3)"

// ---- the model device ----

// What an SM has for the blocks that are resident at once.
struct SmLimits {
  unsigned threads = 0, blocks = 0;
  size_t reserved_shared_bytes = 0;  // of every block, besides what it asks for
};
const SmLimits& sm_limits();
// Blocks that are resident at once on an SM of the model device; 0 where not even one fits.
unsigned resident_blocks_per_sm(size_t shared_bytes, unsigned block_threads);

// Fails unless the model device can execute `what`: an instruction of sm_`needed`, or one of the
// architecture-specific target sm_90a, which later devices do not have.
void require_capability(int needed, const char* what, void* pc);
void require_sm_90a(const char* what, void* pc);

// Traced mode: the current thread enters a basic block. Lanes of a warp wait here for each other;
// the group with the deepest call, then the lowest pc, goes on, which is how a warp reconverges.
void bb_park(void* pc);

// ---- meetings ----

// Waits until every lane of `mask` that has not exited came with the same mask and operation, then
// returns the meeting, whose `value[lane]` holds what each brought. Call finish_meeting() after
// reading. Fails if the caller is not in its own mask.
// exchange: a shuffle or a vote. aligned: `.sync.aligned` of PTX.
enum class Meet : uint8_t { plain, exchange, orders_memory, aligned };
Rendezvous& meet(uint32_t mask, uint64_t value, const char* operation, Meet kind, void* pc);
void finish_meeting(Rendezvous& meeting);

// ---- convergence of a warp (traced mode; docs/simt.md has the rule) ----

// The current lane did something at `pc` that other lanes may not have done. `waited`: it is a wait
// that may take time.
void lane_acted(void* pc, bool waited = false);
// The lane met its warp. `only_acts`: as far as acting alone goes, by a wait that others do too.
void lane_met(bool only_acts = false);
// `operation` at `pc` wants its warp converged: reports a lane whose path is not `first`'s.
void require_converged(const LanePath& path, const Thread& first, const char* operation, void* pc);

// bar.sync / bar.arrive. `threads` = 0 means all threads of the block (exited ones count as
// arrived).
void barrier_sync(unsigned id, unsigned threads, const char* operation, void* pc);
void barrier_arrive(unsigned id, unsigned threads, void* pc);

// barrier.cluster.arrive / .wait over all threads of the group (exited ones count as arrived).
// `releases`: without .relaxed.
void cluster_barrier_arrive(void* pc, bool releases = true);
void cluster_barrier_wait(void* pc);

// ---- asynchronous operations ----

// KernelError, AsyncSchedule, set_async_schedule() and async_schedule() are public: launch.hpp.

// Hands an operation to the schedule: `early` runs it at once, `late` when no thread of the group
// can run (first in, first out), `random` at a random moment in random order. Whatever is left runs
// before the group ends.
void defer(std::function<void()> operation);

// Random numbers of the schedule, from a generator seeded for each group: the same for any number
// of workers.
uint32_t random_u32();

// ---- what the units add ----

struct UnitCallbacks {
  void (*group_begin)(Group&) = nullptr;
  void (*block_begin)(Block&) = nullptr;
  void (*thread_exit)(Thread&) = nullptr;  // on the thread, before it counts as exited
  // Every thread exited, every deferred operation ran. Not called for an abandoned group.
  void (*group_end)(Group&) = nullptr;
};
// Called from a static initialiser of the units' sources. Returns true.
bool register_units(const UnitCallbacks& callbacks);

// ---- memory ----

struct Allocation {
  uintptr_t begin = 0;  // exactly the bytes that the user asked for, without guard bands
  size_t bytes = 0;
  std::string name;
  uint64_t serial = 0;               // unique over the process
  unsigned char* written = nullptr;  // where track_writes() was called: 1 for each byte written
};
// The DeviceMemory that contains `address`, or null. The pointer is valid until that allocation is
// freed.
const Allocation* find_allocation(uintptr_t address);
// The nearest allocation below or around `address` within `distance` bytes, or null: to name an
// overrun buffer.
const Allocation* find_nearest_allocation(uintptr_t address, size_t distance);

// Memory of the program that kernels may use as if it were a DeviceMemory: a `__device__` variable.
void register_memory(const void* begin, size_t bytes, const std::string& name);
void unregister_memory(const void* begin);
// From now on the tracer reports reads of this allocation that nothing has written before: neither
// a kernel nor, by mark_written(), the host. Until the allocation is freed.
void track_writes(const void* begin);
void mark_written(const void* address, size_t bytes);
void mark_all_written();

// The block of the current group whose dynamic shared memory contains `address`, or null.
Block* find_shared_block(const void* address);
// 32-bit shared-window address of a pointer into shared memory, and back. The own block's dynamic
// shared memory starts at kDynamicSharedAddress; another block's has (rank + 1) << 24 added; static
// __shared__ lies at kStaticSharedAddress and above.
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address);
// True if `pointer` is in this OS thread's thread-local storage: static __shared__.
bool is_static_shared(const void* pointer);
// True if `pointer` is on a fiber's stack: a GPU would have it in registers or local memory.
bool is_stack(const void* pointer);

// ---- symbols ----

struct SourceLocation {
  std::string function;  // demangled
  std::string file;      // as compiled
  int line = 0;          // 0: unknown
};
// Where each pc (a return address) is: the innermost inlined frame outside of common/, or else the
// innermost. One addr2line for all that are not in the cache.
std::vector<SourceLocation> symbolize(const std::vector<void*>& pcs);
std::string describe_line(const SourceLocation& location);  // "file.cuh:17"; "" if unknown
std::string describe_pc(void* pc);                          // "file.cuh:17", or the address
std::string kernel_name(
    const void* kernel);  // "sgemm<Config<32, 32>>", without return type and parameters

// ---- tracing ----

// Which unit made an asynchronous access. cp.async works through the generic proxy: each lane's
// copy is counted like a lane of a load, and st.async's like a lane of a store; bulk copies (TMA
// too) and wgmma operands go through the async proxy and are counted per operation.
enum class AsyncKind : uint8_t { cp_async, st_async, bulk, wgmma };

// Installed by tracing.cpp in traced executables; null otherwise. Every call comes from the worker
// that runs the group, except launch_begin and launch_end, which come from the launching thread
// while no worker runs.
struct Hooks {
  virtual ~Hooks() = default;
  virtual void launch_begin(const Launch&) {}
  virtual void launch_end(const Launch&, bool /*abandoned*/) {}
  virtual void group_begin(Group&) {}
  virtual void group_end(Group&) {}
  // Warp::basic_blocks and ::active_lanes are final.
  virtual void block_end(Block&) {}

  // All live threads of the block have synchronised with each other.
  virtual void full_barrier(Block&) {}
  // These threads of the block have synchronised with each other (named barrier, __syncwarp).
  virtual void join(Block&, const uint16_t* /*thread_ids*/, int /*count*/) {}
  // Everything `who` has done so far happens before what a later acquirer of the object does.
  virtual void release(const void* /*object*/, Actor /*who*/, Knowledge = Knowledge::all) {}
  virtual void acquire(const void* /*object*/, Actor /*who*/) {}
  // An asynchronous unit reads or writes a range of shared or global memory. `actor` did it for
  // `issuer`, whose instruction is at `pc`. Call it at issue whatever the schedule, so that a
  // missing wait is found even when the operation happens to run late.
  virtual void async_access(const void* /*address*/, size_t /*bytes*/, bool /*is_write*/,
                            Thread& /*issuer*/, void* /*pc*/, Actor /*actor*/,
                            AsyncKind /*kind*/ = AsyncKind::bulk) {}
  // `operation` starts now and knows what `issuer` knows now. Without this call it starts at its
  // first async_access.
  virtual void async_begin(Actor /*operation*/, Thread& /*issuer*/) {}
  // An atomic read-modify-write that the runtime performs for the current thread (those that g++
  // has no builtin for).
  virtual void atomic_access(const void* /*address*/, int /*bytes*/, void* /*pc*/) {}
  // The same one has been performed.
  virtual void atomic_done(const void* /*address*/) {}
  // load_acquire() or store_release() by the current thread comes next.
  virtual void flag_access(const void* /*address*/, int /*bytes*/, bool /*is_write*/,
                           void* /*pc*/) {}
  // load_acquire() by the current thread has been performed.
  virtual void flag_acquire(const void* /*address*/) {}
  // The volatile load that Thread::flag_read names has been performed.
  virtual void flag_was_read(Thread&) {}
  // A fence by the current thread that orders its accesses for other blocks.
  virtual void memory_fence() {}
  // A synchronous access that a unit performs for the current thread (ldmatrix, stmatrix, wmma, mma
  // helpers): counted and checked as an ordinary load or store.
  virtual void unit_access(const void* /*address*/, int /*bytes*/, bool /*is_write*/,
                           void* /*pc*/) {}
  // fence.proxy.async by this thread: its earlier plain accesses are ordered before later
  // asynchronous ones.
  virtual void proxy_fence(Thread&) {}
  // The current thread initialises, or ends the life of, the mbarrier at `bar`.
  virtual void mbarrier_init(const uint64_t* /*bar*/, void* /*pc*/) {}
  virtual void mbarrier_invalidate(const uint64_t* /*bar*/) {}
  // `who`, for the current thread, arrives at the mbarrier, waits for it or will complete bytes.
  virtual void mbarrier_use(const uint64_t* /*bar*/, Actor /*who*/, bool /*async_proxy*/,
                            void* /*pc*/) {}
  // fence.mbarrier_init by the current thread.
  virtual void mbarrier_init_fence() {}
  // The current thread executes `operation`, which `first` executes elsewhere. Places on one line
  // of the source are one place.
  virtual void different_places(const char* /*operation*/, const Thread& /*first*/,
                                void* /*first_pc*/, void* /*pc*/) {}
  // The current thread comes to `operation`, which its warp executes together, and `alone`, a lane
  // of that warp, acted or waited alone at `alone_pc` before.
  virtual void diverged(const char* /*operation*/, const Thread& /*alone*/, bool /*waited*/,
                        void* /*alone_pc*/, void* /*pc*/) {}
  // The clock of a thread, and whether synchronisation shows `by` that `other` has got past
  // `clock`.
  virtual uint32_t clock(const Thread&) { return 0; }
  virtual bool knows(const Thread& /*by*/, const Thread& /*other*/, uint32_t /*clock*/) {
    return true;
  }
  // The current thread's warp comes to a setmaxnreg, and nothing shows it that `other`, of the same
  // warpgroup, has passed the one at `earlier_pc`.
  virtual void registers_unordered(const Thread& /*other*/, void* /*earlier_pc*/, void* /*pc*/) {}
  // A thread's wait for an mbarrier is over. `idle`: no phase of the barrier was complete, and the
  // wait was for the one before the first, which counts as complete. That is right for a stage
  // that was never filled, and a wrong parity everywhere else.
  virtual void mbarrier_waited(Thread&, bool /*idle*/, void* /*pc*/) {}
};
extern Hooks* hooks;

// A fresh pseudo-thread for an operation of an asynchronous unit: negative, unique within the
// group.
Actor new_async_actor();

}  // namespace cookbook::simt
