// SPDX-License-Identifier: MIT
//
// The tracer of one worker thread: groups the lanes' accesses into requests and counts them, checks
// bounds and alignment, and feeds the race detectors. It is merged with the others when a launch
// ends.
#pragma once

#include <array>
#include <unordered_set>

#include "common/backend/simt/tracer/state.hpp"

namespace cookbook::simt::tracing {

class WorkerTracer {
 public:
  void begin_launch(const Launch& launch);

  void begin_group(Group& group);

  void end_group();

  void end_block(const Block& block);

  /// Adds what this worker gathered to the sums. The caller holds the mutex.
  void merge_into(Shared& sums);

  /// Adds the sectors this worker touched to the launch's bitmaps, by serial.
  void merge_sectors(std::map<uint64_t, std::vector<uint64_t>>& touched) const;

  RaceDetector& detector() { return detector_; }

  /// The copy `actor`, which writes shared memory next, reads from here. Copies of zeros do not.
  void note_copy_source(Actor actor, const void* address);

  /// Of the asynchronous access by lanes that comes next.
  void note_kind(AsyncKind kind) { kind_ = kind; }

  // ---- accesses ----

  /// `fenced`: it writes a flag with release semantics.
  void lane_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, SharedRule rule,
                   bool natural, void* pc, unsigned part, Actor actor, FlagUse use = FlagUse::none,
                   bool fenced = false);

  void bulk_access(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc, Actor actor);

  // ---- flags in global memory, between groups ----

  void flag_was_read(Thread& thread);
  void flag_acquire(const Thread& thread, uintptr_t address) {
    flag_acquire(thread, address, detector_.clock_of(thread.actor));
  }
  void memory_fence(Thread& thread);

  // ---- mbarriers ----

  void barrier_init(const Thread& thread, const uint64_t* bar, void* pc);
  void barrier_use(const uint64_t* bar, Actor actor, bool async_proxy, void* pc);

  // ---- findings of the runtime ----

  void note_different_places(const char* operation, const Thread& first, void* first_pc,
                             const Thread& thread, void* pc);
  void note_diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                     const Thread& thread, void* pc);
  void note_registers_unordered(const Thread& other, void* earlier_pc, const Thread& thread,
                                void* pc);

  void overflow(Thread& thread, const std::string& operation, const char* type, void* pc);

 private:
  static constexpr size_t kFirstTableSize = 1024;

  enum class Where { ignored, shared, global };

  struct Buffer {
    uintptr_t begin = 0, end = 0;
    uint64_t serial = 0;
    std::string name;
    std::vector<uint64_t> sectors;  // a bit per sector
    GlobalCell* cells = nullptr;
    unsigned char* written = nullptr;  // as in Allocation
  };

  struct TableEntry {
    SiteKey key;
    int index = -1;
  };

  /// What an access refers to. Shared: `offset` in the detector's memory. Global: the buffer
  /// becomes recent_[0]. Reports what is out of bounds or misaligned; fails where the access would
  /// crash.
  Where locate(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc, bool natural,
               size_t* offset);

  Where in_dynamic_shared(const Block& block, size_t at, Thread& thread, size_t bytes, Op op,
                          void* pc, bool natural, uintptr_t address, size_t* offset);

  Where locate_slowly(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc,
                      bool natural, size_t* offset);

  static std::string describe_static_overrun(uintptr_t at, size_t bytes);

  static std::string describe_overrun(uintptr_t address, size_t bytes, const Allocation* near);

  /// Of an access to recent_[0]: fails where the block has not waited for the launch before.
  void require_previous_ended(const Thread& thread, Op op, void* pc) const;

  void check_alignment(Thread& thread, uintptr_t address, size_t bytes, Op op, void* pc);

  [[noreturn]] void report_misaligned(Thread& thread, uintptr_t address, size_t bytes, Op op,
                                      void* pc);

  void use_buffer(const Allocation& allocation);

  static void mark_sectors(Buffer& buffer, uintptr_t address, size_t bytes);

  /// Of an allocation whose writes are tracked: reports a read of what nothing has written.
  void check_written(const Buffer& buffer, uintptr_t address, size_t bytes, Op op, void* pc,
                     Thread& thread);

  size_t site_index(const SiteKey& key);

  void grow_table();

  /// Returns the site's index. `source`: where a copy reads what it writes to `address`; 0 for
  /// everything else.
  size_t count_lane(const Thread& thread, const SiteKey& key, SharedRule rule, uintptr_t address,
                    uintptr_t source = 0);

  static void finish(Site& site, OpenRequest& open);

  /// The block, in its group, whose shared memory is at `offset` of the detector's.
  uint32_t owner_of(size_t offset) const;

  size_t barrier_offset(const uint64_t* bar) const;

  // ---- findings ----

  Occurrence& note(Kind kind, uint32_t earlier, void* pc, const Thread& thread, Op op);

  uint3 thread_index(uint32_t linear) const;

  /// Turns the group's hazards into findings.
  void take_hazards();

  // ---- global memory, between blocks ----

  void flag_acquire(const Thread& thread, uintptr_t address, uint32_t clock);

  uint3 block_of_group(uint64_t group) const;

  /// The number of a site's place in the source. 0, which is not compared, if there are too many.
  uint32_t place_of(Site& site, FlagUse use);

  void check_global(Buffer& buffer, uintptr_t address, size_t bytes, Op op, size_t site,
                    FlagUse use, Thread& thread);

  /// The same between two threads of a group, by plain loads and stores. Two stores are no finding:
  /// threads may store the same value.
  void check_in_group(Kind kind, const GlobalAccess& earlier, Thread& thread, Op op,
                      const Buffer& buffer, size_t cell, size_t site);

  void report_global(Kind kind, const GlobalAccess& earlier, FlagUse use, Thread& thread, Op op,
                     const Buffer& buffer, size_t cell, size_t site);

  const Launch* launch_ = nullptr;
  Group* group_ = nullptr;
  uint64_t group_id_ = 0;
  bool group_is_open_ = false;
  std::vector<uint3> blocks_;
  uint32_t threads_per_block_ = 1;
  uint32_t warps_per_block_ = 1;
  size_t shared_stride_ = 0;  ///< Of one block's dynamic shared memory in the detector's.
  size_t static_offset_ = 0;  ///< Where static shared memory starts in the detector's.
  Range static_shared_;
  RaceDetector detector_;
  BlockOrder order_{detector_, shared().flags};
  std::vector<Site> sites_;
  std::vector<TableEntry> table_;
  std::vector<std::vector<OpenRequest>> open_;  // by warp of the group, site
  struct {
    Actor actor = 0;
    uintptr_t address = 0;
  } copy_source_;
  std::map<uint64_t, std::unique_ptr<Buffer>> buffers_;
  std::array<Buffer*, 8> recent_{};  // latest first
  AsyncKind kind_ = AsyncKind::cp_async;
  unsigned polls_ = 0;                        ///< Reads of flags.
  std::unordered_set<uintptr_t> flags_used_;  ///< Addresses of the group's atomics and flags.
  Findings findings_;
  KernelCounts counts_;
};

}  // namespace cookbook::simt::tracing
