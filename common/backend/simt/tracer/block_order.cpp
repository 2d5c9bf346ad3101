// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/block_order.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace cookbook::simt {
namespace {

std::vector<FlagRelease::Run> to_runs(const std::vector<uint32_t>& clocks) {
  std::vector<FlagRelease::Run> runs;
  for (uint32_t thread = 0; thread < clocks.size(); ++thread) {
    if (runs.empty() || runs.back().clock != clocks[thread]) {
      runs.push_back({thread, clocks[thread]});
    }
  }
  return runs;
}

uint32_t clock_in(const std::vector<FlagRelease::Run>& runs, uint32_t thread) {
  const auto after = std::upper_bound(
      runs.begin(), runs.end(), thread,
      [](uint32_t wanted, const FlagRelease::Run& run) { return wanted < run.first_thread; });
  return after == runs.begin() ? 0 : (after - 1)->clock;
}

}  // namespace

bool FlagRelease::covers(uint32_t of_thread, uint32_t clock) const {
  return clock_in(covered, of_thread) >= clock;
}

// ---- flags ----

void Flags::clear() {
  heads_.clear();
  links_.clear();
  releases_.clear();
  used_ = false;
  spent_ = 0;
}

const FlagLink* Flags::carried(uintptr_t address) {
  if (!used_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = heads_.find(address);
  return found == heads_.end() ? nullptr : found->second;
}

const FlagRelease* Flags::keep(FlagRelease&& release) {
  const std::lock_guard<std::mutex> lock(mutex_);
  releases_.push_back(std::move(release));
  return &releases_.back();
}

void Flags::add(uintptr_t address, const FlagRelease* release) {
  constexpr int kLookedAt = 4;
  const std::lock_guard<std::mutex> lock(mutex_);
  const FlagLink*& head = heads_[address];
  const FlagLink* link = head;
  for (int i = 0; i < kLookedAt && link != nullptr; ++i, link = link->before) {
    if (link->release == release) return;
  }
  // A later release of one thread covers its earlier ones.
  const bool replaces = head != nullptr && head->release->group == release->group &&
                        head->release->thread == release->thread &&
                        head->release->block_only == release->block_only;
  links_.push_back({release, replaces ? head->before : head});
  head = &links_.back();
  used_.store(true, std::memory_order_release);
}

// ---- one group ----

void BlockOrder::begin_group(uint64_t group, uint32_t threads) {
  group_ = group;
  threads_ = threads;
  touched_.assign(threads, false);
  fence_count_ = 0;
  for (std::vector<Fence>& fences : fences_) fences.clear();
  acquired_.clear();
  held_.clear();
  acquired_before_.clear();
}

BlockOrder::Version BlockOrder::version_of(Actor thread) const {
  return {detector_.row_of(thread), detector_.interval(), fence_count_, acquired_.size()};
}

std::vector<uint32_t> BlockOrder::known_clocks(Actor thread) const {
  std::vector<uint32_t> clocks(threads_);
  for (uint32_t i = 0; i < threads_; ++i) clocks[i] = detector_.known(thread, i);
  return clocks;
}

void BlockOrder::fence(Actor thread, bool block_only) {
  const auto at = static_cast<uint32_t>(thread);
  if (!held_.empty()) {
    FlagRelease::Early& early = held_[at].early;
    if (early.last == 0) early.last = detector_.clock_of(thread);
    if (early.last_for_all == 0 && !block_only) early.last_for_all = detector_.clock_of(thread);
  }
  std::vector<Fence>& fences = fences_[block_only];
  if (fences.empty()) fences.resize(threads_);
  Fence& fence = fences[at];
  // A spin loop may fence in every round.
  if (!fence.clocks.empty() && !touched_[at] && fence.version == version_of(thread)) return;
  touched_[at] = false;
  fence.known = to_runs(known_clocks(thread));
  ++fence_count_;
  fence.version = version_of(thread);
  fence.clocks.push_back(detector_.tick(thread));
  fence.released = nullptr;
}

bool BlockOrder::has_fenced(Actor thread) const {
  return std::any_of(fences_.begin(), fences_.end(), [thread](const std::vector<Fence>& fences) {
    return !fences.empty() && !fences[static_cast<uint32_t>(thread)].clocks.empty();
  });
}

// A release within a block takes every fence, another one those for all blocks.
const FlagRelease* BlockOrder::released_by(Actor thread, bool fenced, bool block_only) {
  const auto at = static_cast<uint32_t>(thread);
  std::vector<Fence>& fences = fences_[block_only];
  if (!fenced && fences.empty()) return nullptr;
  Fence* own = fences.empty() ? nullptr : &fences[at];
  std::vector<uint32_t> clocks;
  if (fenced) {
    clocks = known_clocks(thread);
    detector_.tick(thread);
  } else {
    Version version = version_of(thread);
    if (own->released != nullptr && own->released_version == version) return own->released;
    own->released_version = std::move(version);
    clocks.assign(threads_, 0);
    for (const std::vector<Fence>& of : fences_) {
      if (of.empty() || (&of == &fences_[1] && !block_only)) continue;
      for (uint32_t i = 0; i < threads_; ++i) {
        clocks[i] = std::max(clocks[i], clock_in(of[at].known, i));
        const std::vector<uint32_t>& others = of[i].clocks;
        const auto after =
            std::upper_bound(others.begin(), others.end(), detector_.known(thread, i));
        if (after != others.begin()) clocks[i] = std::max(clocks[i], *(after - 1));
      }
    }
    if (std::all_of(clocks.begin(), clocks.end(), [](uint32_t clock) { return clock == 0; })) {
      return nullptr;
    }
  }
  const FlagRelease* made = keep_release(thread, clocks, block_only);
  if (!fenced) own->released = made;
  return made;
}

const FlagRelease* BlockOrder::keep_release(Actor thread, const std::vector<uint32_t>& clocks,
                                            bool block_only) {
  FlagRelease release;
  release.group = group_;
  release.thread = static_cast<uint32_t>(thread);
  release.block_only = block_only;
  for (const Acquired& acquired : acquired_) {
    if (clocks[acquired.thread] >= acquired.clock)
      release.learnt.push_back(read_of(acquired, Missing::flag));
  }
  release.covered = to_runs(clocks);
  return flags_.keep(std::move(release));
}

void BlockOrder::release_assumed(uintptr_t address, Actor thread) {
  if (flags_.is_exhausted()) return;
  std::vector<Fence>& fences = fences_[0];
  if (fences.empty()) fences.resize(threads_);
  const auto at = static_cast<uint32_t>(thread);
  Fence& own = fences[at];
  if (own.released == nullptr || touched_[at] || own.released_version != version_of(thread)) {
    own.released = keep_release(thread, known_clocks(thread), false);
    own.released_version = version_of(thread);
    detector_.tick(thread);
    touched_[at] = false;
    flags_.spend(own.released->covered.size() + own.released->learnt.size() + threads_ / 8);
  }
  flags_.add(address, own.released);
}

void BlockOrder::release(uintptr_t address, Actor thread, bool fenced, bool block_only) {
  Held* const held = held_.empty() ? nullptr : &held_[static_cast<uint32_t>(thread)];
  Held* const lock = held != nullptr && held->address == address ? held : nullptr;
  if (lock != nullptr) {
    // A barrier serves as well as a fence.
    if (lock->interval != detector_.interval() || lock->row != detector_.row_of(thread)) {
      lock->early = {};
    } else if (lock->early.last_for_all == 0) {
      lock->early.last_for_all = detector_.clock_of(thread);
    }
  }
  // An atomic for all blocks releases less to other blocks than to its own if fences were for one.
  for (const bool only : {false, true}) {
    if (only ? !block_only && (fenced || fences_[1].empty()) : block_only) continue;
    if (only && fences_[1].empty()) fences_[1].resize(threads_);
    const FlagRelease* made = released_by(thread, fenced, only);
    if (made == nullptr) continue;
    if (lock != nullptr) {
      FlagRelease of_lock = *made;
      of_lock.early = lock->early;
      made = flags_.keep(std::move(of_lock));
    }
    flags_.add(address, made);
  }
  if (lock != nullptr) *lock = {};
}

void BlockOrder::acquire(uintptr_t address, Actor thread, uint32_t clock, bool block_only,
                         bool takes_lock) {
  if (takes_lock) {
    if (held_.empty()) held_.resize(threads_);
    // What follows is apart from what came before the lock.
    held_[static_cast<uint32_t>(thread)] = {address,
                                            detector_.interval(),
                                            detector_.row_of(thread),
                                            {detector_.tick(thread) + 1, 0, 0}};
  }
  const FlagLink* link = flags_.carried(address);
  const auto own = static_cast<uint32_t>(thread);
  if (link == nullptr ||
      (link->before == nullptr && link->release->group == group_ && link->release->thread == own)) {
    return;
  }
  const uint64_t hash = (reinterpret_cast<uintptr_t>(link) ^ static_cast<uint64_t>(thread) << 48) *
                        0x9e3779b97f4a7c15ull;
  if (!acquired_before_.insert(hash).second) return;
  acquired_.push_back({own, clock, {link, block_only}});
  if (!takes_lock) return;
  Acquired& lock = acquired_.back();
  lock.is_lock = true;
  lock.interval = detector_.interval();
  lock.row = detector_.row_of(thread);
}

namespace {
/// Whether a thread of `reader` learns of the release by such a read.
bool reaches(const FlagRelease& release, bool read_block_only, uint64_t reader, Missing forgiven) {
  return forgiven == Missing::scope || release.group == reader ||
         !(release.block_only || read_block_only);
}
}  // namespace

// A barrier since the lock was taken.
bool BlockOrder::has_met(const Acquired& lock) const {
  return lock.interval != detector_.interval() ||
         lock.row != detector_.row_of(static_cast<Actor>(lock.thread));
}

bool BlockOrder::has_fenced_since(const Acquired& lock, bool block_only) const {
  const std::vector<Fence>& fences = fences_[block_only];
  return !fences.empty() && !fences[lock.thread].clocks.empty() &&
         fences[lock.thread].clocks.back() > lock.clock;
}

bool BlockOrder::is_known(Actor thread, const Acquired& acquired, Missing forgiven) const {
  if (detector_.known(thread, acquired.thread) < acquired.clock) return false;
  return !acquired.is_lock || forgiven == Missing::lock_fence ||
         acquired.thread != static_cast<uint32_t>(thread) || has_met(acquired) ||
         has_fenced_since(acquired, false) || has_fenced_since(acquired, true);
}

FlagRead BlockOrder::read_of(const Acquired& acquired, Missing forgiven) const {
  FlagRead read = acquired.read;
  read.block_only |= acquired.is_lock && forgiven != Missing::lock_fence && !has_met(acquired) &&
                     !has_fenced_since(acquired, false);
  return read;
}

void BlockOrder::flatten(Acquired& acquired, Missing forgiven) const {
  struct Read : FlagRead {
    uint64_t by;  // the group
  };
  acquired.is_flat = true;
  std::set<std::tuple<const FlagLink*, bool, uint64_t>> seen;
  const FlagRead first = read_of(acquired, forgiven);
  acquired.flat.clear();
  acquired.flat_block_only = first.block_only;
  std::vector<Read> rest{{first, group_}};
  while (!rest.empty()) {
    const Read read = rest.back();
    rest.pop_back();
    for (const FlagLink* link = read.link;
         link != nullptr && seen.emplace(link, read.block_only, read.by).second;
         link = link->before) {
      const FlagRelease& release = *link->release;
      if (!reaches(release, read.block_only, read.by, forgiven)) continue;
      acquired.flat[release.group].push_back(&release);
      for (const FlagRead& learnt : release.learnt) rest.push_back({learnt, release.group});
    }
  }
  constexpr size_t kOfAVisit = 4;
  flags_.spend(kOfAVisit * seen.size());
}

bool BlockOrder::tells(const FlagRelease& release, const Acquired& acquired, uint32_t other,
                       uint32_t clock, Missing forgiven) const {
  if (!release.covers(other, clock)) return false;
  // Of the holders of one lock, the earlier one may have used the memory before its own fence.
  const auto& [first, last, last_for_all] = release.early;
  const FlagRelease& latest = *acquired.read.link->release;
  const bool is_early = acquired.is_lock && release.thread == other &&
                        latest.group == release.group && latest.thread == other &&
                        latest.early.first == first && first <= clock &&
                        clock <= (release.group == group_ ? last : last_for_all);
  return !is_early || forgiven == Missing::lock_fence ||
         (forgiven == Missing::scope && clock > last);
}

bool BlockOrder::knows(Actor thread, uint64_t group, uint32_t other, uint32_t clock,
                       Missing forgiven) {
  // Most often the flag's last writer is the one that is asked for.
  for (auto at = acquired_.rbegin(); at != acquired_.rend(); ++at) {
    const FlagRelease& release = *at->read.link->release;
    if (release.group == group && tells(release, *at, other, clock, forgiven) &&
        reaches(release, read_of(*at, forgiven).block_only, group_, forgiven) &&
        is_known(thread, *at, forgiven)) {
      return true;
    }
  }
  for (Acquired& acquired : acquired_) {
    if (!is_known(thread, acquired, forgiven)) continue;
    Acquired forgiving;
    if (forgiven != Missing::flag) {
      forgiving = acquired;
      flatten(forgiving, forgiven);
    } else if (!acquired.is_flat ||
               acquired.flat_block_only != read_of(acquired, forgiven).block_only) {
      flatten(acquired, forgiven);
    }
    const auto& flat = forgiven != Missing::flag ? forgiving.flat : acquired.flat;
    const auto found = flat.find(group);
    if (found == flat.end()) continue;
    for (const FlagRelease* release : found->second) {
      if (tells(*release, acquired, other, clock, forgiven)) return true;
    }
  }
  return false;
}

Missing BlockOrder::missing(Actor thread, uint64_t group, uint32_t other, uint32_t clock) {
  for (const Missing lack : {Missing::scope, Missing::lock_fence}) {
    if (knows(thread, group, other, clock, lack)) return lack;
  }
  if (assumed_->flags_.is_exhausted()) return Missing::unknown;
  const bool would_know = assumed_->knows(thread, group, other, clock);
  if (assumed_->flags_.is_exhausted()) return Missing::unknown;
  return would_know ? Missing::fence : Missing::flag;
}

bool BlockOrder::relies(Actor thread, uint64_t group, uint32_t other, uint32_t clock,
                        uint32_t earlier_pc, uint32_t later_pc, bool both_write) {
  if (flag_places.contains(earlier_pc) || flag_places.contains(later_pc)) return false;
  if (assumed_->flags_.is_exhausted()) return false;
  if (assumed_->knows(thread, group, other, clock)) {
    return !knows(thread, group, other, clock);
  }
  // A read that meets a write in no order is a look at a flag.
  if (!both_write) flag_places.insert({earlier_pc, later_pc});
  return false;
}

}  // namespace cookbook::simt
