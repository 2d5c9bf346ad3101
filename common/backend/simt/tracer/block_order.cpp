// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/block_order.hpp"

#include <algorithm>

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
                        head->release->thread == release->thread;
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
  fences_.clear();
  acquired_.clear();
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

void BlockOrder::fence(Actor thread) {
  const auto at = static_cast<uint32_t>(thread);
  if (fences_.empty()) fences_.resize(threads_);
  Fence& fence = fences_[at];
  // A spin loop may fence in every round.
  if (!fence.clocks.empty() && !touched_[at] && fence.version == version_of(thread)) return;
  touched_[at] = false;
  fence.known = to_runs(known_clocks(thread));
  ++fence_count_;
  fence.version = version_of(thread);
  fence.clocks.push_back(detector_.tick(thread));
  fence.released = nullptr;
}

const FlagRelease* BlockOrder::released_by(Actor thread, bool fenced) {
  const auto at = static_cast<uint32_t>(thread);
  if (!fenced && fences_.empty()) return nullptr;
  Fence* own = fences_.empty() ? nullptr : &fences_[at];
  std::vector<uint32_t> clocks;
  if (fenced) {
    clocks = known_clocks(thread);
    detector_.tick(thread);
  } else {
    Version version = version_of(thread);
    if (own->released != nullptr && own->released_version == version) return own->released;
    own->released_version = std::move(version);
    clocks.assign(threads_, 0);
    for (uint32_t i = 0; i < threads_; ++i) {
      clocks[i] = clock_in(own->known, i);
      const std::vector<uint32_t>& others = fences_[i].clocks;
      const auto after = std::upper_bound(others.begin(), others.end(), detector_.known(thread, i));
      if (after != others.begin()) clocks[i] = std::max(clocks[i], *(after - 1));
    }
    if (std::all_of(clocks.begin(), clocks.end(), [](uint32_t clock) { return clock == 0; })) {
      return nullptr;
    }
  }
  FlagRelease release;
  release.group = group_;
  release.thread = at;
  for (const Acquired& acquired : acquired_) {
    if (clocks[acquired.thread] >= acquired.clock) release.learnt.push_back(acquired.link);
  }
  release.covered = to_runs(clocks);
  const FlagRelease* made = flags_.keep(std::move(release));
  if (!fenced) own->released = made;
  return made;
}

void BlockOrder::release(uintptr_t address, Actor thread, bool fenced) {
  if (const FlagRelease* made = released_by(thread, fenced)) flags_.add(address, made);
}

void BlockOrder::acquire(uintptr_t address, Actor thread, uint32_t clock) {
  const FlagLink* link = flags_.carried(address);
  if (link == nullptr || (link->release->group == group_ && link->before == nullptr)) return;
  const uint64_t hash = (reinterpret_cast<uintptr_t>(link) ^ static_cast<uint64_t>(thread) << 48) *
                        0x9e3779b97f4a7c15ull;
  if (!acquired_before_.insert(hash).second) return;
  acquired_.push_back({static_cast<uint32_t>(thread), clock, link, false, {}});
}

void BlockOrder::flatten(Acquired& acquired) {
  acquired.is_flat = true;
  std::unordered_set<const FlagLink*> seen;
  std::vector<const FlagLink*> rest{acquired.link};
  while (!rest.empty()) {
    const FlagLink* link = rest.back();
    rest.pop_back();
    for (; link != nullptr && seen.insert(link).second; link = link->before) {
      acquired.flat[link->release->group].push_back(link->release);
      rest.insert(rest.end(), link->release->learnt.begin(), link->release->learnt.end());
    }
  }
}

bool BlockOrder::knows(Actor thread, uint64_t group, uint32_t other, uint32_t clock) {
  const auto is_known = [&](const Acquired& acquired) {
    return detector_.known(thread, acquired.thread) >= acquired.clock;
  };
  // Most often the flag's last writer is the one that is asked for.
  for (auto at = acquired_.rbegin(); at != acquired_.rend(); ++at) {
    const FlagRelease& release = *at->link->release;
    if (release.group == group && release.covers(other, clock) && is_known(*at)) return true;
  }
  for (Acquired& acquired : acquired_) {
    if (!is_known(acquired)) continue;
    if (!acquired.is_flat) flatten(acquired);
    const auto found = acquired.flat.find(group);
    if (found == acquired.flat.end()) continue;
    for (const FlagRelease* release : found->second) {
      if (release->covers(other, clock)) return true;
    }
  }
  return false;
}

}  // namespace cookbook::simt
