// SPDX-License-Identifier: MIT
//
// Happens-before over the shared memory of one group of blocks (one block, one cluster, or a whole
// cooperative grid), which runs on one OS thread. Vector clocks say which earlier accesses an actor
// knows of; a shadow cell for every four bytes remembers who wrote and who read them.
//
// Actors are the threads of the group and the asynchronous operations. The clocks of operations
// share a pool of slots: knowing an operation means to know the earlier ones of its slot too, which
// can hide a mistake but never invent one.
//
// In a cluster a thread has a second slot, for its reads, and a block has one for its start and one
// for its fence_mbarrier_init: see Knowledge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/backend/simt/runtime/sync_tracer.hpp"

namespace cookbook::simt {

/// The mistakes that a traced run finds.
enum class Kind : uint8_t {
  // In shared memory; the race detector reports these.
  write_after_write,
  read_after_write,
  write_after_read,
  uninitialised,
  proxy_load,         ///< an asynchronous operation reads ordinary stores that were not fenced
  proxy_store,        ///< it overwrites ordinary stores that were not fenced
  proxy_answer,       ///< ... or an answer of launch control that ordinary loads have read
  tensor_unfenced,    ///< of tensor memory: tcgen05.st, waited for but not fenced before an mma
  tensor_before,      ///< advice: no tcgen05.fence::before_thread_sync between two warps' accesses
  tensor_after,       ///< advice: no tcgen05.fence::after_thread_sync there
  barrier_unordered,  ///< an mbarrier is used by a thread that need not see its initialisation
  barrier_unfenced,   ///< an asynchronous operation uses an mbarrier that was not fenced
  not_started,        ///< of another block's shared memory, before it is known to exist
  exit_async,         ///< a block's own asynchronous operation is not waited for before it ends
  exit_remote,        ///< nothing orders another block's access before the owner's end
  // Others; the tracer reports these.
  global_write_write,
  global_write_read,
  global_read_write,
  out_of_bounds,
  shared_out_of_bounds,
  misaligned,
  static_shared,
  different_places,
  acted_alone,
  waited_alone,
  registers_unordered,
  registers_pending,  ///< A variable that tcgen05.ld will write is read.
  absent_lane,
  not_a_number,
  infinity,  ///< Of finite numbers.
  overflow,
  recursion,  ///< Deeper than the stack of a GPU's thread.
  global_uninitialised,
  unordered_sums,  ///< no mistake: blocks add rounded numbers in any order
  exited_before,   ///< a note: a thread exits before a __syncthreads that others execute
};

/// What a flag that passes from one thread to another lacks to order their accesses.
enum class Missing : uint8_t {
  unknown,     ///< There may be such a flag.
  flag,        ///< There is none.
  fence,       ///< A fence before the flag is written.
  lock_fence,  ///< A fence after the atomicCAS() that takes a lock.
  scope,       ///< A fence or an atomic has the scope of a block.
};

/// Of a mistake: its first occurrence, and how often it was seen.
struct HazardFacts {
  Missing missing = Missing::unknown;
  bool relies = false;  ///< Of volatile accesses: a mistake unless one of them is a flag itself.
  bool earlier_async = false, later_async = false;
  bool earlier_atomic = false, later_atomic = false;
  bool write = false;         ///< The later access is one.
  size_t offset = 0;          ///< Of the first byte, in the detector's shared memory or the buffer.
  uint32_t idle_wait_pc = 0;  ///< See idle_wait(); of the later thread, if it reads.
  uint64_t count = 0;
};

/// One kind of mistake at one pair of program counters.
struct SharedHazard : HazardFacts {
  using Kind = simt::Kind;
  Kind kind;
  uint32_t earlier_pc = 0;  ///< Tokens that the caller chose; 0 for uninitialised.
  uint32_t later_pc = 0;
  uint32_t earlier_thread = 0;  ///< Linear in the group: the thread, or the operation's issuer.
  uint32_t later_thread = 0;    ///< exit_async, exit_remote: of the block that ends.
};

/// What orders two threads of a group besides barriers: flags (block_order.hpp).
struct FlagOrder {
  virtual bool orders(Actor thread, uint32_t earlier, uint32_t clock) = 0;
  /// Two volatile accesses at two places: whether only a flag without its fence orders them.
  virtual bool relies(Actor thread, uint32_t earlier, uint32_t clock, uint32_t earlier_pc,
                      uint32_t later_pc, bool both_write) = 0;
  virtual Missing missing(Actor thread, uint32_t earlier, uint32_t clock) = 0;
};

class RaceDetector {
 public:
  explicit RaceDetector(FlagOrder* flags = nullptr) : flags_(flags) {}
  struct Access {
    Actor actor;
    uint32_t pc;
    bool write;
    bool atomic = false;
    bool async_proxy = false;       ///< TMA, bulk copies, wgmma operands; not cp.async.
    bool may_outlive = false;       ///< The block need not wait for it before it ends.
    bool flag = false;              ///< Volatile: it agrees with other flags and with atomics.
    bool overwrites = false;        ///< An atomic that does not need the old value.
    bool may_be_undefined = false;  ///< A read of what nothing has written is no mistake.
    bool deferred = false;          ///< A store over a store is noted by note_deferred() only.
    bool is_answer = false;         ///< Of cluster launch control.
    bool tensor_core = false;  ///< Of tensor memory, by an mma or cp, not by tcgen05.ld or .st.
  };
  using Key = std::tuple<SharedHazard::Kind, uint32_t, uint32_t>;

  /// Forgets everything about the previous group; its shared memory holds nothing yet. `clusters`:
  /// its blocks may use each other's shared memory. `tensor_memory`: the GPU has it.
  void begin_group(uint32_t blocks, uint32_t threads_per_block, size_t shared_bytes, bool clusters,
                   bool tensor_memory);

  /// A barrier of every thread of the group.
  void full_barrier();
  /// A meeting point of some threads: what any of them did is known to all of them.
  void join(const Actor* threads, size_t count);
  /// What `actor` knows is added to what `object` (a barrier, a flag, a commit group) carries.
  void release(const void* object, Actor actor, Knowledge what = Knowledge::all);
  /// `actor` learns what `object` carries.
  void acquire(const void* object, Actor actor);
  /// A new operation (negative) starts now and knows what `issuer` knows.
  Actor begin_async(Actor issuer);
  /// `thread` executes fence.proxy.async.
  void proxy_fence(Actor thread);
  /// The last mbarrier wait of `thread`, at `pc`, did not wait for anything. 0: it did.
  void idle_wait(Actor thread, uint32_t pc);

  /// Checks and records an access to [offset, offset + bytes) of block `owner`'s shared memory.
  void access(size_t offset, size_t bytes, const Access& access, uint32_t owner);

  /// The same for tensor memory of block `owner`: `columns` columns from `first` on, of 16 groups
  /// of eight lanes those in `groups`.
  void tensor_access(uint32_t owner, uint32_t first, uint32_t columns, uint32_t groups,
                     const Access& access);
  /// The columns hold nothing yet, or no more: a thread frees them, and everything must be over.
  void tensor_reset(uint32_t owner, uint32_t first, uint32_t columns);
  void tensor_freed(uint32_t owner, uint32_t first, uint32_t columns, const Access& access);
  /// The warp of `operation`, a tcgen05.ld or .st, has waited for it.
  void tensor_waited(Actor operation);
  /// `thread` executes tcgen05.fence::before_thread_sync, ::after_thread_sync.
  void tensor_before_fence(Actor thread);
  void tensor_after_fence(Actor thread);
  /// The first offset of a hazard in tensor memory, which is a multiple of four per column.
  size_t tensor_offset() const { return tensor_cells_ * 4; }

  /// `thread` initialises the mbarrier at `bar`, `offset` in the detector's memory; it is gone.
  void barrier_init(const void* bar, size_t offset, Actor thread, uint32_t pc);
  void barrier_invalidate(const void* bar) { inits_.erase(bar); }
  /// `actor` uses it; `owner` is the block that has it.
  void barrier_use(const void* bar, const Access& access, uint32_t owner);
  /// `thread` executes fence.mbarrier_init.
  void barrier_init_fence(Actor thread);

  /// The clock of `thread` up to which `by` knows what it did.
  uint32_t known(Actor by, uint32_t thread) const { return known_clock(view(by), thread); }
  uint32_t clock_of(Actor thread) const { return clock_[static_cast<uint32_t>(thread)]; }
  /// Returns the clock of `thread` and advances it: it separates what comes next from what came
  /// before.
  uint32_t tick(Actor thread) { return clock_[static_cast<uint32_t>(thread)]++; }
  /// What `thread` knows has changed if one of these has.
  std::shared_ptr<const void> row_of(Actor thread) const {
    return thread_clocks_[static_cast<uint32_t>(thread)].row;
  }
  uint32_t interval() const { return interval_; }

  /// All threads have exited: reports what nobody waited for.
  void check_exits();

  /// The store of the last access left another value than the one before it, or the same one.
  void note_deferred(bool differs);
  bool has_deferred() const { return !deferred_.empty(); }
  const std::map<Key, SharedHazard>& hazards() const { return hazards_; }
  void clear_hazards() { hazards_.clear(); }

 private:
  static constexpr uint32_t kNobody = ~0u;
  static constexpr int kWriters = 4;  ///< Each wrote other bytes of the cell.
  static constexpr int kReaders = 4;
  static constexpr size_t kRememberedOperations = 1 << 17;

  static constexpr uint32_t kSlots = 0xffffff;  ///< What Entry::slot holds.
  struct Entry {
    uint32_t clock;
    uint32_t pc;
    uint32_t slot : 24;
    uint32_t bytes : 4;  ///< Which of the cell's four.
    uint32_t atomic : 1;
    uint32_t async_proxy : 1;
    uint32_t flag : 1;
    uint32_t tensor_core : 1;
  };
  struct Cell {
    uint32_t group = 0;     ///< Contents are stale unless this is the current group.
    uint32_t interval = 0;  ///< Reads by threads are ordered unless this is the current interval.
    uint8_t writer_count = 0;
    uint8_t reader_count = 0;
    uint8_t initialised = 0;
    bool ordinary_stores = false;  ///< A writer may need a proxy fence.
    Entry writers[kWriters];
    Entry readers[kReaders];
  };
  /// What an actor knows of every slot's clock, since the last full barrier. Rows are not changed
  /// once shared, so a join hands one row to all who met.
  using Row = std::vector<uint32_t>;
  using RowPointer = std::shared_ptr<const Row>;
  /// What a thread knew at a fence.
  struct Fence {
    uint32_t interval = 0;  ///< 0: it has executed none.
    RowPointer row;
  };
  struct ThreadClock {
    RowPointer row;                ///< Null: only what the last full barrier taught.
    std::vector<uint32_t> fences;  ///< Clocks at which the thread fenced the proxies, ascending.
    Fence proxy, after;            ///< The latest, and of tcgen05.fence::after_thread_sync.
    uint32_t idle_wait_pc = 0;
  };
  struct Operation {
    Actor actor = 0;
    uint32_t clock = 0;
    uint32_t issuer = 0;
    uint32_t issuer_clock = 0;
    uint32_t next_before = 0;  ///< See before_; of tcgen05.ld and .st, once waited for.
    RowPointer row;
  };
  /// An actor as the checks need it.
  struct View {
    uint32_t slot;
    uint32_t clock;
    const RowPointer* row;
    uint32_t issuer;  ///< The thread itself if it is one.
    uint32_t issuer_clock;
  };

  /// An mbarrier since its initialisation.
  struct Init {
    uint32_t thread, clock, pc;
    size_t offset;
    uint32_t fence_thread = kNobody, fence_clock = 0;  ///< Its first fence for the async proxy.
    uint32_t mark = 0;  ///< Clock of its block's slot for fence_mbarrier_init; 0: not executed.
  };
  /// The last access of one slot to a block's shared memory that must be over when it ends.
  struct Use {
    uint32_t clock = 0, pc = 0, issuer = 0;
    size_t offset = 0;
  };

  bool is_remembered(Actor operation) const;
  bool is_thread(uint32_t slot) const { return slot < threads_; }
  uint32_t block_of(uint32_t thread) const { return thread / threads_per_block_; }
  /// Of a thread, in the group: no warp has threads of two blocks.
  uint32_t warp_of(uint32_t thread) const {
    if (threads_per_block_ % kWarpSize == 0) return thread / kWarpSize;
    return block_of(thread) * warps_per_block_ + thread % threads_per_block_ / kWarpSize;
  }
  /// Where a row tells of the reads of a thread, or of what an operation does.
  size_t read_slot(uint32_t slot) const {
    return has_clusters_ && is_thread(slot) ? reads_ + slot : slot;
  }
  Row& own_row(Actor thread);
  bool knows_init(const Init& init, const View& knower) const;
  void note_use(uint32_t owner, const View& me, uint32_t pc, bool write, size_t offset);
  void check_started(uint32_t owner, const View& me, const Access& access, size_t offset);
  uint32_t slot_of(Actor operation) const;
  View view(Actor actor) const;
  uint32_t known_clock(const View& knower, size_t slot) const;
  bool ordered(const Entry& entry, const View& later, bool is_read = false) const;
  /// A hazard, unless flags order the two.
  bool conflicts(const Entry& entry, const Access& access, const View& me, bool is_read) const;
  void add_knowledge(Row& into, const View& from, Knowledge what) const;
  RowPointer merged(const RowPointer& a, const RowPointer& b);
  void report(SharedHazard::Kind kind, const Entry* earlier, const Access& later, const View& me,
              size_t offset);
  void check_cell(Cell& cell, size_t offset, uint32_t bytes, const Access& access, const View& me);
  /// Calls visit(cell index, groups of eight lanes of its 32).
  template <class Visit>
  void for_each_tensor_cell(uint32_t owner, uint32_t first, uint32_t columns, uint32_t groups,
                            const Visit& visit);
  bool is_known_to_somebody(const Entry& entry) const;
  void check_proxy(const Cell& cell, size_t offset, uint32_t bytes, const Access& access,
                   const View& me);
  void check_answer(const Cell& cell, size_t offset, uint32_t bytes, const Access& access,
                    const View& me);
  void check_fences(const Cell& cell, size_t offset, uint32_t part, const Access& access,
                    const View& me);
  const Operation* operation_of(const Entry& entry) const;

  uint32_t threads_ = 0, threads_per_block_ = 1, warps_per_block_ = 1;
  bool has_clusters_ = false;
  uint32_t group_ = 0;
  uint32_t interval_ = 0;
  uint32_t pool_ = 1;
  size_t slots_ = 0;
  size_t reads_ = 0, starts_ = 0, fences_ = 0;  ///< First slots; only in clusters.
  /// First slot of the warps, whose clocks count their tcgen05.fence::before_thread_sync. Without
  /// tensor memory there is none.
  size_t before_ = 0;
  std::vector<ThreadClock> thread_clocks_;
  std::vector<uint32_t> clock_;        ///< By slot.
  std::vector<uint32_t> base_;         ///< Clock that everybody knows since the last full barrier.
  std::vector<uint32_t> slot_issuer_;  ///< Latest issuer, for messages.
  std::vector<Operation> operations_;  ///< Ring, by -actor - 1.
  Actor last_operation_ = 0;
  std::vector<Cell> cells_;  ///< Of shared memory, then of tensor memory.
  size_t tensor_cells_ = 0;  ///< Where that begins.
  std::unordered_map<const void*, RowPointer> objects_;
  std::unordered_map<const void*, Init> inits_;
  std::vector<const void*> unfenced_;   ///< mbarriers that no proxy fence has seen.
  std::vector<std::vector<Use>> uses_;  ///< By block and slot; empty: none.
  std::map<Key, SharedHazard> hazards_;
  std::vector<SharedHazard> deferred_;
  FlagOrder* flags_;
  // The last merge: lanes of a warp that acquire one barrier all need the same one.
  RowPointer merge_a_, merge_b_, merge_result_;
};

}  // namespace cookbook::simt
