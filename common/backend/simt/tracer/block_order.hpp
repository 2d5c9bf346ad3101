// SPDX-License-Identifier: MIT
//
// Happens-before between groups of blocks, which meet in global memory only. What orders them is a
// flag: an address that one block writes by an atomic, a volatile store or store_release(), and
// another reads by an atomic, a volatile load or load_acquire().
//
// A write of a flag *releases* what a fence has covered: the fence of its thread covers what that
// thread knew, and the fence of another thread of the group what that thread did itself.
// store_release(), and an atomic with release semantics, has a fence of its own. A read of the flag
// *acquires* all releases to that address. So a reset of a flag does not end what it carries; that
// hides no race, because a release covers only what came before it.
//
// A read needs no fence here. The memory model wants one, and docs/simt.md says so.
#pragma once

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

/// What one thread passed on at one write of a flag.
struct FlagRelease {
  struct Run {
    uint32_t first_thread, clock;  ///< Of this thread and those after it, up to the next run.
  };
  uint64_t group = 0;
  uint32_t thread = 0;
  std::vector<Run> covered;
  std::vector<const FlagLink*> learnt;  ///< What it knew of other groups.
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

 private:
  std::mutex mutex_;
  std::atomic<bool> used_{false};
  std::deque<FlagRelease> releases_;
  std::deque<FlagLink> links_;
  std::unordered_map<uintptr_t, const FlagLink*> heads_;
};

/// What the threads of the group that one worker runs know of other groups.
class BlockOrder {
 public:
  BlockOrder(RaceDetector& detector, Flags& flags) : detector_(detector), flags_(flags) {}

  void begin_group(uint64_t group, uint32_t threads);
  /// `thread` is about to read or write global memory.
  void touch(Actor thread) { touched_[static_cast<uint32_t>(thread)] = true; }
  /// __threadfence().
  void fence(Actor thread);
  /// `thread` is about to write the flag at `address`. `fenced`: with release semantics.
  void release(uintptr_t address, Actor thread, bool fenced);
  /// `thread` has read the flag at `address` when its clock was `clock`.
  void acquire(uintptr_t address, Actor thread, uint32_t clock);
  /// Whether `thread` knows of what `other` of another group did at `clock`.
  bool knows(Actor thread, uint64_t group, uint32_t other, uint32_t clock);

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
    const FlagLink* link;
    bool is_flat = false;
    std::unordered_map<uint64_t, std::vector<const FlagRelease*>> flat;  ///< By group.
  };

  Version version_of(Actor thread) const;
  std::vector<uint32_t> known_clocks(Actor thread) const;
  static void flatten(Acquired& acquired);
  const FlagRelease* released_by(Actor thread, bool fenced);

  RaceDetector& detector_;
  Flags& flags_;
  uint64_t group_ = 0;
  uint32_t threads_ = 0;
  size_t fence_count_ = 0;
  std::vector<uint8_t> touched_;
  std::vector<Fence> fences_;  ///< By thread; empty until the first fence.
  std::vector<Acquired> acquired_;
  std::unordered_set<uint64_t> acquired_before_;  ///< Hashes of thread and link.
};

}  // namespace cookbook::simt
