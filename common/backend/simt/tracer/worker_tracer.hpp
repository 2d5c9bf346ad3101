// SPDX-License-Identifier: MIT
//
// The tracer of one worker thread: groups the lanes' accesses into requests and counts them, checks
// bounds and alignment, and feeds the race detectors. It is merged with the others when a launch
// ends.
#pragma once

#include <array>
#include <unordered_map>
#include <utility>

#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/tracer/state.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/register_tracer.hpp"
#include "common/backend/simt/units/tensor_tracer.hpp"

namespace cookbook::simt::tracing {

class WorkerTracer final : public SyncTracer,
                           public AccessTracer,
                           public AsyncTracer,
                           public MbarrierTracer,
                           public RegisterTracer,
                           public TensorTracer {
 public:
  void begin_launch(const Launch& launch);
  /// From here to end_group() this is the tracer of the OS thread.
  void begin_group(Group& group);
  void end_group(bool abandoned);
  void end_block(const Block& block);

  /// Adds what this worker gathered to the sums. The caller holds the mutex.
  void merge_into(Shared& sums);

  /// Adds the sectors this worker touched to the launch's bitmaps, by serial.
  void merge_sectors(std::map<uint64_t, std::vector<uint64_t>>& touched) const;

  // ---- what instrumented code on the current thread does ----

  /// `operation`: of an asynchronous unit, or the thread itself.
  void lane_access(Actor operation, const Access& access);
  void enter_basic_block(void* pc);
  /// It has read the flag at `address`, or performed an atomic on it: `takes_lock` as in
  /// BlockOrder.
  void flag_acquire(uintptr_t address, bool takes_lock) {
    Thread& thread = *current_thread;
    flag_acquire(thread, flag_at(address), detector_.clock_of(thread.actor), thread.block_scope,
                 takes_lock);
  }
  void overflow(const std::string& operation, void* pc);
  void not_a_number(void* pc);
  void infinity(const char* why, void* pc);
  /// The current thread is most_calls deep.
  void deep_recursion();

  // ---- what the runtime and the units do ----

  void full_barrier(Block& block) override;
  void join(Block& block, const uint16_t* thread_ids, int count) override;
  void release(const void* object, Actor who, Knowledge what) override {
    detector_.release(object, who, what);
  }
  void acquire(const void* object, Actor who) override { detector_.acquire(object, who); }
  void different_places(const char* operation, const Thread& first, void* first_pc,
                        void* pc) override {
    note_pair(Kind::different_places, first, first_pc, operation, pc);
  }
  void passed_without_exited(const Block& block, void* pc) override;
  void lane_absent(uint32_t source, uint32_t mask, void* pc) override;
  void diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                void* pc) override {
    note_pair(waited ? Kind::waited_alone : Kind::acted_alone, alone, alone_pc, operation, pc);
  }

  void atomic_access(const void* address, int bytes, void* pc) override;
  void atomic_done(const void* address) override;
  void memory_freed(const void* begin) override;
  void load_acquire(const void* address, int bytes, void* pc) override;
  void store_release(const void* address, int bytes, void* pc) override;
  void memory_fence(bool block_only) override;
  void unit_access(const void* address, int bytes, bool is_write, void* pc) override;

  Actor async_begin() override { return detector_.begin_async(current_thread->actor); }
  void async_copy(void* smem, const void* gmem, unsigned bytes, unsigned valid_bytes, void* pc,
                  Actor operation) override;
  void async_store(void* address, unsigned bytes, void* pc, Actor operation) override;
  void async_bulk(const void* address, size_t bytes, BulkUse use, void* pc,
                  Actor operation) override;
  void proxy_fence() override { detector_.proxy_fence(current_thread->actor); }

  void mbarrier_init(const uint64_t* bar, void* pc) override;
  void mbarrier_invalidate(const uint64_t* bar) override { detector_.barrier_invalidate(bar); }
  void mbarrier_use(const uint64_t* bar, Actor who, bool async_proxy, void* pc) override;
  void mbarrier_init_fence() override { detector_.barrier_init_fence(current_thread->actor); }
  void mbarrier_waited(bool idle, void* pc) override {
    detector_.idle_wait(current_thread->actor, idle ? token_of(pc) : 0);
  }

  void setmaxnreg(uint32_t n, void* pc) override;

  void tensor_read(const TensorRange& range, bool by_product, void* pc, Actor operation) override {
    RaceDetector::Access access{operation, token_of(pc), false};
    access.may_be_undefined = !by_product;  // a load of more lanes than are needed
    access.tensor_core = by_product;
    tensor_access(range, access);
  }
  void tensor_write(const TensorRange& range, bool is_store, void* pc, Actor operation) override {
    RaceDetector::Access access{operation, token_of(pc), true};
    access.tensor_core = !is_store;
    tensor_access(range, access);
  }
  void tensor_waited(Actor operation) override { detector_.tensor_waited(operation); }
  void tensor_before_fence() override { detector_.tensor_before_fence(current_thread->actor); }
  void tensor_after_fence() override { detector_.tensor_after_fence(current_thread->actor); }
  void tensor_allocated(const TensorRange& range, void* pc) override {
    detector_.tensor_reset(range.block->index, range.first, range.columns);
    if (!group_->traced) return;
    SiteCounts& counts =
        sites_[site_index({token_of(pc), 0, Space::tensor, Op::alloc, 0, 0})].counts;
    ++counts.requests;
    ++counts.lanes;
    counts.bytes += uint64_t{range.columns} * 128 * 4;
  }
  void tensor_freed(const TensorRange& range, void* pc) override {
    detector_.tensor_freed(range.block->index, range.first, range.columns,
                           {current_thread->actor, token_of(pc), true});
  }
  void registers_pending(const uint32_t* variable, void* pc) override {
    pending_registers_[address_of(variable)] = token_of(pc);
  }
  void registers_arrived(const uint32_t* variable) override {
    pending_registers_.erase(address_of(variable));
  }

 private:
  static constexpr size_t kFirstTableSize = 1024;

  struct Buffer {
    uintptr_t begin = 0, end = 0;
    uint64_t serial = 0;
    std::string name;
    std::vector<uint64_t> sectors;     // a bit per sector
    GlobalShadow* shadow = nullptr;    ///< Null: one thread runs alone.
    unsigned char* written = nullptr;  // as in Allocation
  };

  static void make_current(WorkerTracer* tracer);

  /// For this OS thread, where find_nan asks for it.
  static void trap_not_finite(bool on);

  struct TableEntry {
    SiteKey key;
    int index = -1;
  };

  /// The memory that an access refers to.
  struct Location {
    static constexpr size_t kIgnored = ~size_t{0};
    Buffer* buffer = nullptr;  ///< Null: shared memory, or memory that is not looked at.
    size_t offset = kIgnored;  ///< In the detector's memory, of shared memory.
  };

  /// A warp's n-th setmaxnreg, and what its first lane had done before.
  struct RegisterCall {
    const Thread* first;
    LanePath path;
    void* pc;
    std::array<uint32_t, kWarpSize> clocks{};  ///< Of its lanes; 0: has not come.
  };

  /// A volatile load that a thread is about to execute, and its clock then. The thread's next
  /// access or basic block shows that it has been performed.
  struct VolatileLoad {
    uintptr_t address = 0;  ///< 0: none
    uint32_t clock = 0;
  };

  /// Reports what is out of bounds or misaligned; fails where the access would crash.
  Location locate(Thread& thread, const Access& access);
  Location in_dynamic_shared(const Block& block, size_t at, Thread& thread, const Access& access);
  Location locate_slowly(Thread& thread, const Access& access);

  static std::string describe_static_overrun(uintptr_t at, size_t bytes);
  static std::string describe_overrun(uintptr_t address, size_t bytes, const Allocation* near);

  /// Fails where the block has not waited for the launch before.
  static void require_previous_ended(const Buffer& buffer, const Thread& thread,
                                     const Access& access);

  void check_alignment(Thread& thread, const Access& access) {
    if (access.natural && (access.address & (access.bytes - 1)) != 0) {
      report_misaligned(thread, access);
    }
  }
  [[noreturn]] void report_misaligned(Thread& thread, const Access& access);

  Buffer& use_buffer(const Allocation& allocation);

  void bulk_access(Actor operation, const Access& access);

  static void mark_sectors(Buffer& buffer, uintptr_t address, size_t bytes);

  /// Of an allocation whose writes are tracked: reports a read of what nothing has written.
  void check_written(const Buffer& buffer, Thread& thread, const Access& access);

  size_t site_index(const SiteKey& key);

  void grow_table();

  /// Returns the site's index.
  size_t count_lane(const Thread& thread, const SiteKey& key, const Access& access);

  /// Counts a request of `warp`, of the group, whose lanes have all come.
  void finish(Site& site, OpenRequest& open, size_t warp);
  /// Keeps it, if it is the worst of its site so far.
  void keep(const Site& site, const OpenRequest& open, size_t warp, const RequestCost& cost);
  /// The address that those of a kept request count from; 0: lanes use memory of several blocks.
  uintptr_t start_of(const Site& site, const LaneRequest& lanes, std::string& name) const;

  /// The block, in its group, whose shared memory is at `offset` of the detector's.
  uint32_t owner_of(size_t offset) const;

  size_t barrier_offset(const uint64_t* bar) const;

  void tensor_access(const TensorRange& range, const RaceDetector::Access& access) {
    if (!group_->traced) return;
    detector_.tensor_access(range.block->index, range.first, range.columns, range.groups, access);
  }
  /// Of a load from the thread's own variables.
  void check_pending_registers(const Thread& thread, const Access& access);

  // ---- findings ----

  Occurrence& note(Kind kind, uint32_t earlier, void* pc, const Thread& thread, Op op);

  /// The current thread at `pc` and an earlier one, of which `operation` should be the same.
  void note_pair(Kind kind, const Thread& earlier, void* earlier_pc, const char* operation,
                 void* pc);

  uint3 thread_index(uint32_t linear) const;
  bool is_one_warp(uint32_t one, uint32_t other) const {
    return one / threads_per_block_ == other / threads_per_block_ &&
           one % threads_per_block_ / kWarpSize == other % threads_per_block_ / kWarpSize;
  }

  /// Turns the group's hazards into findings.
  void take_hazards();

  // ---- global memory, between blocks ----

  /// The last store has been performed, and the volatile load of `thread`.
  void finish_accesses(Thread& thread);
  void finish_store();
  void flag_acquire(const Thread& thread, uintptr_t flag, uint32_t clock, bool block_only,
                    bool takes_lock);
  /// What stands for an address as a flag: each group has shared memory of its own.
  uintptr_t flag_at(uintptr_t address) const;
  /// Of an access to a flag, before and after it is checked.
  void assume_flag(const Thread& thread, const Access& access);
  void note_flag(const Thread& thread, const Access& access);
  void add_finding(const FindingKey& key, const Occurrence& found);
  /// Whether the group has used the flag at `address`: another thread of it, if `but` is not kAny.
  static constexpr uint32_t kAny = ~0u;
  bool has_used(uintptr_t address, uint32_t but) const {
    const auto found = flags_used_.find(address);
    return found != flags_used_.end() && (but == kAny || found->second != but);
  }
  /// Whether the access is a store whose value shows when it has been performed.
  bool shows_value(const Access& access) const {
    return access.op == Op::store && access.bytes <= over_store_.before.size();
  }
  /// Of such a store, over another one.
  void note_store(const Access& access);

  uint3 block_of_group(uint64_t group) const;

  Shared::Place place_at(uint32_t number) const;

  /// The number of a site's place in the source. 0, which is not compared, if there are too many.
  uint32_t place_of(Site& site, const Access& access);

  void check_global(Buffer& buffer, size_t site, Thread& thread, const Access& access);

  /// An access to byte `offset` of `buffer`, which an earlier one has touched, too.
  void check_pair(Kind kind, const GlobalAccess& earlier, Thread& thread, const Access& access,
                  const Buffer& buffer, size_t offset);

  bool recursed_ = false;  ///< A recursion has been found in this launch.
  int looks_at_stacks_ = 0;
  std::map<void*, bool> returns_after_;  ///< By return address.
  const Launch* launch_ = nullptr;
  Group* group_ = nullptr;
  uint64_t group_id_ = 0;
  std::vector<uint3> blocks_;
  uint32_t threads_per_block_ = 1;
  uint32_t warps_per_block_ = 1;
  size_t shared_stride_ = 0;  ///< Of one block's dynamic shared memory in the detector's.
  size_t static_offset_ = 0;  ///< Where static shared memory starts in the detector's.
  Range static_shared_;
  RaceDetector detector_{&order_};
  BlockOrder assumed_{detector_, shared().assumed_flags, nullptr};
  BlockOrder order_{detector_, shared().flags, &assumed_};
  std::vector<Site> sites_;
  std::vector<Request> worst_;  // by site, where keep_requests; no lane active: none
  std::vector<TableEntry> table_;
  std::vector<std::vector<OpenRequest>> open_;  // by warp of the group, site
  std::map<uint64_t, std::unique_ptr<Buffer>> buffers_;
  std::array<Buffer*, 8> recent_{};                        // latest first
  std::vector<std::vector<RegisterCall>> register_calls_;  // by warp of the group
  /// A store over another one, which comes next: a mistake if the value is another one then.
  struct OverStore {
    uintptr_t address = 0;  ///< 0: none
    uint32_t bytes = 0;
    std::array<unsigned char, 16> before{};
    std::vector<std::pair<FindingKey, Occurrence>> found;  ///< In global memory.
  } over_store_;
  /// A volatile store to what its group had not used, and what was there before.
  struct FirstStore {
    uint64_t group = 0;
    uint32_t thread = 0;
    std::array<unsigned char, 16> before{};
  };
  std::unordered_map<uintptr_t, FirstStore> first_stores_;
  const FirstStore* first_store(uintptr_t address, uint64_t group, uint32_t thread) const {
    const auto found = first_stores_.find(address);
    const bool is_it = found != first_stores_.end() && found->second.group == group &&
                       found->second.thread == thread;
    return is_it ? &found->second : nullptr;
  }
  std::vector<VolatileLoad> volatile_loads_;  // by thread of the group ...
  uint32_t open_volatile_loads_ = 0;          // ... and how many there are
  unsigned polls_ = 0;                        ///< Reads of flags.
  /// By address of the group's atomics and flags: the thread that used it; kAny: several.
  std::unordered_map<uintptr_t, uint32_t> flags_used_;
  std::unordered_map<uintptr_t, uint32_t> pending_registers_;  ///< By address: where loaded.
  Findings findings_;
  KernelCounts counts_;
};

// The tracer of this OS thread; null unless it runs a group of a launch that is being traced.
inline constinit thread_local WorkerTracer* worker_tracer = nullptr;

}  // namespace cookbook::simt::tracing
