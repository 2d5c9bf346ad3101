// SPDX-License-Identifier: MIT
//
// Happens-before by flags, between threads of one group and of several. A flag is an address, in
// global or shared memory, that one thread writes by an atomic, a volatile store or
// store_release(), and another reads by an atomic, a volatile load or load_acquire().
//
// A write of a flag *releases* what a fence has covered: the fence of its thread covers what that
// thread knew, and the fence of another thread of the group what that thread did itself.
// store_release(), and an atomic with release semantics, has a fence of its own. A read of the flag
// *acquires* all releases to that address. So a reset of a flag does not end what it carries; that
// hides no race, because a release covers only what came before it.
//
// A fence or an atomic with the scope of a block orders threads of that block only.
//
// A read needs no fence here, unless it is an atomicCAS() that takes a lock. The memory model wants
// one, and docs/simt.md says so.
//
// A second object *assumes* that every write of a flag has a fence. Two volatile accesses that only
// this order knows of rely on a fence that is missing. A flag itself looks different: some read of
// it meets its write in neither order. Until the launch's first volatile access nothing is assumed,
// since only what comes after a volatile access can order it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/backend/simt/tracer/races.hpp"

namespace cookbook::simt {

struct FlagLink;

/// What a thread learnt when it read a flag. `block_only`: by an atomic with the scope of a block.
struct FlagRead {
  const FlagLink* link;
  bool block_only;
};

/// What one thread passed on at one write of a flag.
struct FlagRelease {
  struct Run {
    uint32_t first_thread, clock;  ///< Of this thread and those after it, up to the next run.
  };
  uint64_t group = 0;
  uint32_t thread = 0;
  bool block_only = false;  ///< By a fence or an atomic with the scope of a block.
  /// Clocks of `thread` under the lock that it releases, before its first fence of either scope.
  struct Early {
    uint32_t first = 1, last = 0, last_for_all = 0;
  } early;
  std::vector<Run> covered;
  std::vector<FlagRead> learnt;  ///< What it knew by flags.
  bool covers(uint32_t of_thread, uint32_t clock) const;
};

/// The releases to one address, latest first.
struct FlagLink {
  const FlagRelease* release;
  const FlagLink* before;
};

/// The flags of one launch, for all workers. Nothing is freed before the launch ends.
class Flags {
 public:
  void clear();
  /// Null: nobody has released anything to it.
  const FlagLink* carried(uintptr_t address);
  const FlagRelease* keep(FlagRelease&& release);
  void add(uintptr_t address, const FlagRelease* release);
  /// Whether so much has been assumed that it takes too long to go on.
  bool is_exhausted() const { return spent_.load(std::memory_order_relaxed) > kMostSpent; }
  void spend(size_t work) { spent_.fetch_add(work, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kMostSpent = 4'000'000;
  std::atomic<uint64_t> spent_{0};
  std::mutex mutex_;
  std::atomic<bool> used_{false};
  std::deque<FlagRelease> releases_;
  std::deque<FlagLink> links_;
  std::unordered_map<uintptr_t, const FlagLink*> heads_;
};

/// What the threads of the group that one worker runs know by flags.
class BlockOrder final : public FlagOrder {
 public:
  /// `assumed`: what would be known if every write of a flag had a fence; null for that itself.
  BlockOrder(RaceDetector& detector, Flags& flags, BlockOrder* assumed)
      : detector_(detector), flags_(flags), assumed_(assumed) {}

  void begin_group(uint64_t group, uint32_t threads);
  /// `thread` is about to read or write memory.
  void touch(Actor thread) { touched_[static_cast<uint32_t>(thread)] = true; }
  /// __threadfence() or, with `block_only`, __threadfence_block().
  void fence(Actor thread, bool block_only);
  bool has_fenced(Actor thread) const;
  /// `thread` is about to write the flag at `address`. `fenced`: with release semantics.
  void release(uintptr_t address, Actor thread, bool fenced, bool block_only);
  /// The same, with the fence that is assumed; call it before the write is recorded.
  void release_assumed(uintptr_t address, Actor thread);
  /// `thread` has read the flag at `address` when its clock was `clock`. `takes_lock`: no fence
  /// belongs to the read, and one must follow.
  void acquire(uintptr_t address, Actor thread, uint32_t clock, bool block_only, bool takes_lock);
  /// Whether `thread` knows by flags of what `other` of `group` did at `clock`; or would, if it did
  /// not lack what is `forgiven`.
  bool knows(Actor thread, uint64_t group, uint32_t other, uint32_t clock,
             Missing forgiven = Missing::flag);
  /// Why it does not know.
  Missing missing(Actor thread, uint64_t group, uint32_t other, uint32_t clock);
  /// See FlagOrder.
  bool relies(Actor thread, uint64_t group, uint32_t other, uint32_t clock, uint32_t earlier_pc,
              uint32_t later_pc, bool both_write);
  bool orders(Actor thread, uint32_t earlier, uint32_t clock) override {
    return knows(thread, group_, earlier, clock);
  }
  bool relies(Actor thread, uint32_t earlier, uint32_t clock, uint32_t earlier_pc,
              uint32_t later_pc, bool both_write) override {
    return relies(thread, group_, earlier, clock, earlier_pc, later_pc, both_write);
  }
  Missing missing(Actor thread, uint32_t earlier, uint32_t clock) override {
    return missing(thread, group_, earlier, clock);
  }
  /// Tokens of the places whose volatile accesses are those of flags.
  std::unordered_set<uint32_t> flag_places;

 private:
  /// A version of what a thread knows: another one if that has changed.
  struct Version {
    std::shared_ptr<const void> row;
    uint32_t interval = 0;
    size_t fences = 0, acquired = 0;
    bool operator==(const Version&) const = default;
  };
  struct Fence {
    std::vector<uint32_t> clocks;         ///< Of all its fences, ascending.
    std::vector<FlagRelease::Run> known;  ///< What the last one covered.
    Version version, released_version;
    const FlagRelease* released = nullptr;  ///< Made of the last fence, for `released_version`.
  };
  struct Acquired {
    uint32_t thread, clock;
    FlagRead read;
    bool is_lock = false;  ///< Its thread knows it after a fence or a barrier.
    uint32_t interval = 0;
    std::shared_ptr<const void> row{};
    bool is_flat = false, flat_block_only = false;
    std::unordered_map<uint64_t, std::vector<const FlagRelease*>> flat{};  ///< By group.
  };

  /// The last lock that a thread has taken and not released.
  struct Held {
    uintptr_t address = 0;  ///< 0: none
    uint32_t interval = 0;
    std::shared_ptr<const void> row{};
    FlagRelease::Early early{};
  };

  Version version_of(Actor thread) const;
  std::vector<uint32_t> known_clocks(Actor thread) const;
  bool has_met(const Acquired& lock) const;
  bool has_fenced_since(const Acquired& lock, bool block_only) const;
  bool is_known(Actor thread, const Acquired& acquired, Missing forgiven) const;
  FlagRead read_of(const Acquired& acquired, Missing forgiven) const;
  /// Whether what it did at `clock` is known by this release and read, which may be of one lock.
  bool tells(const FlagRelease& release, const Acquired& acquired, uint32_t other, uint32_t clock,
             Missing forgiven) const;
  void flatten(Acquired& acquired, Missing forgiven) const;
  const FlagRelease* keep_release(Actor thread, const std::vector<uint32_t>& clocks,
                                  bool block_only);
  const FlagRelease* released_by(Actor thread, bool fenced, bool block_only);

  RaceDetector& detector_;
  Flags& flags_;
  BlockOrder* assumed_;
  uint64_t group_ = 0;
  uint32_t threads_ = 0;
  size_t fence_count_ = 0;
  std::vector<uint8_t> touched_;
  /// By thread; empty until the first fence. First of fences for all blocks, then of those for one.
  std::array<std::vector<Fence>, 2> fences_;
  std::vector<Acquired> acquired_;
  std::vector<Held> held_;                        ///< By thread; empty until the first lock.
  std::unordered_set<uint64_t> acquired_before_;  ///< Hashes of thread and link.
};

}  // namespace cookbook::simt
