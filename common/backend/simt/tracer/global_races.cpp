// SPDX-License-Identifier: MIT
// Accesses of different threads, in one group or in two, to the same global memory; flags.
#include <sched.h>

#include <cstring>

#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

// Between the hook of a store and the store no other thread of this worker runs, so whatever is
// observed next finds it performed.
void WorkerTracer::finish_store() {
  if (over_store_.address == 0) return;
  const bool differs = std::memcmp(reinterpret_cast<const void*>(over_store_.address),
                                   over_store_.before.data(), over_store_.bytes) != 0;
  over_store_.address = 0;
  detector_.note_deferred(differs);
  for (const auto& [key, occurrence] : over_store_.found) {
    if (!differs) break;
    add_finding(key, occurrence);
  }
  over_store_.found.clear();
}

void WorkerTracer::add_finding(const FindingKey& key, const Occurrence& found) {
  const auto [at, is_new] = findings_.try_emplace(key, found);
  if (is_new) return;
  ++at->second.count;
  at->second.relies &= found.relies;
}

void WorkerTracer::note_store(const Access& access) {
  over_store_.address = access.address;
  over_store_.bytes = access.bytes;
  std::memcpy(over_store_.before.data(), reinterpret_cast<const void*>(access.address),
              access.bytes);
}

void WorkerTracer::finish_accesses(Thread& thread) {
  finish_store();
  if (open_volatile_loads_ == 0) return;
  VolatileLoad& load = volatile_loads_[static_cast<uint32_t>(thread.actor)];
  if (load.address == 0) return;
  --open_volatile_loads_;
  const VolatileLoad done = std::exchange(load, {});
  flag_acquire(thread, done.address, done.clock, false, false);
}

void WorkerTracer::enter_basic_block(void* pc) {
  finish_accesses(*current_thread);
  bb_park(pc);
}

uintptr_t WorkerTracer::flag_at(uintptr_t address) const {
  constexpr int kAddressBits = 47;
  const auto* pointer = reinterpret_cast<const void*>(address);
  const bool is_shared = static_shared_.contains(address) || find_shared_block(pointer) != nullptr;
  return is_shared ? address ^ (group_id_ + 1) << kAddressBits : address;
}

void WorkerTracer::assume_flag(const Thread& thread, const Access& access) {
  if (access.use == FlagUse::none || access.use == FlagUse::atomic_load) return;
  Shared& state = shared();
  const bool is_volatile = access.use == FlagUse::volatile_access;
  if (is_volatile && !state.assumes) state.assumes = true;
  if (!state.assumes) return;
  if (access.op != Op::load && access.changes) {
    assumed_.release_assumed(flag_at(access.address), thread.actor);
  }
  if (is_volatile) assumed_.touch(thread.actor);
}

void WorkerTracer::note_flag(const Thread& thread, const Access& access) {
  if (access.use == FlagUse::none || access.use == FlagUse::atomic_load) return;
  const uintptr_t flag = flag_at(access.address);
  if (access.op != Op::load) {
    // Within a group the detector sees store_release() itself.
    if (access.op == Op::store && access.fenced && launch_->group_count == 1) return;
    if (access.changes) order_.release(flag, thread.actor, access.fenced, thread.block_scope);
  } else {
    volatile_loads_[static_cast<uint32_t>(thread.actor)] = {flag, detector_.clock_of(thread.actor)};
    ++open_volatile_loads_;
  }
}

void WorkerTracer::flag_acquire(const Thread& thread, uintptr_t flag, uint32_t clock,
                                bool block_only, bool takes_lock) {
  constexpr unsigned kPollsBetweenYields = 256;  // the block waited for may need this CPU
  if (++polls_ % kPollsBetweenYields == 0) sched_yield();
  order_.acquire(flag, thread.actor, clock, block_only, takes_lock);
  if (shared().assumes) assumed_.acquire(flag, thread.actor, clock, false, false);
}

void WorkerTracer::memory_fence(bool block_only) {
  if (!group_->traced) return;
  finish_accesses(*current_thread);
  order_.fence(current_thread->actor, block_only);
}

uint3 WorkerTracer::block_of_group(uint64_t group) const {
  return block_index_in(*launch_, group * launch_->blocks_per_group);
}

uint32_t WorkerTracer::place_of(Site& site, const Access& access) {
  uint16_t& number = site.number[access.changes];
  if (number == 0) {
    Shared& state = shared();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.places.size() >> GlobalAccess::kPlaceBits != 0) return 0;
    number = static_cast<uint16_t>(state.places.size());
    state.places.push_back(
        {site.key.pc, access.use, site.key.op, current_thread->block_scope, access.changes});
  }
  return number;
}

Shared::Place WorkerTracer::place_at(uint32_t number) const {
  const std::lock_guard<std::mutex> lock(shared().mutex);
  return shared().places[number];
}

void WorkerTracer::check_global(Buffer& buffer, size_t site, Thread& thread, const Access& access) {
  const uintptr_t address = access.address;
  const size_t bytes = access.bytes;
  const Op op = access.op;
  const FlagUse use = access.use;
  if (buffer.shadow == nullptr || group_id_ >= kComparedGroups) return;
  order_.touch(thread.actor);
  const auto actor = static_cast<uint32_t>(thread.actor);
  const uint32_t place = place_of(sites_[site], access);
  if (place == 0) return;
  const bool alone = launch_->group_count == 1;
  const uint64_t mine =
      GlobalAccess{group_id_, detector_.clock_of(thread.actor), actor, place}.to_word(alone);
  const size_t begin = address - buffer.begin, end = begin + bytes;
  const bool writes = op != Op::load && op != Op::async_load && use != FlagUse::atomic_load;
  const auto is_mine = [mine, alone](uint64_t word) {
    constexpr int kAt = GlobalAccess::kGroupAt;
    return alone ? word != 0 : word >> kAt == mine >> kAt;
  };
  const auto check = [&](Kind kind, uint64_t earlier, size_t at) {
    if (earlier == 0) return;
    check_pair(kind, GlobalAccess::of(earlier, alone), thread, access, buffer, at);
  };
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto compare = [&](const GlobalCell& cell, uint64_t writer, size_t at) {
    check(writes ? Kind::global_write_write : Kind::global_write_read, writer, at);
    if (!writes) return;
    check(Kind::global_read_write, cell.reader.load(kRelaxed), at);
    check(Kind::global_read_write, cell.other_reader.load(kRelaxed), at);
  };
  const auto visit = [&](GlobalCell& cell, size_t at) {
    uint64_t writer = cell.writer.load(kRelaxed);
    if (writes) {
      if (is_mine(writer)) {
        cell.writer.store(mine, kRelaxed);
      } else {
        writer = cell.writer.exchange(mine);  // another worker may write it now
      }
    } else {
      const uint64_t reader = cell.reader.load(kRelaxed);
      if (reader == 0 || is_mine(reader)) {
        if (reader >> 28 != mine >> 28) cell.reader.store(mine, kRelaxed);
      } else if (cell.other_reader.load(kRelaxed) >> 28 != mine >> 28) {
        cell.other_reader.store(mine, kRelaxed);
      }
    }
    compare(cell, writer, at);
  };
  GlobalCell* const words = buffer.shadow->words();
  GlobalCell* of_bytes = buffer.shadow->bytes();
  for (size_t at = begin; at < end;) {
    const size_t next = std::min(end, (at & ~size_t{3}) + 4);
    if (next - at == 4) {
      visit(words[at / 4], at);
    } else {
      const GlobalCell& word = words[at / 4];
      compare(word, word.writer.load(kRelaxed), at);
      if (of_bytes == nullptr) of_bytes = buffer.shadow->make_bytes();
    }
    for (size_t byte = at; of_bytes != nullptr && byte < next; ++byte) {
      GlobalCell& cell = of_bytes[byte];
      if (next - at == 4) {
        compare(cell, cell.writer.load(kRelaxed), byte);
      } else {
        visit(cell, byte);
      }
    }
    at = next;
  }
  for (size_t at = 0; use != FlagUse::none && use < FlagUse::addition && at < bytes; at += 4) {
    const auto [used, is_new] = flags_used_.try_emplace(address + at, actor);
    if (is_new && use == FlagUse::volatile_access && op == Op::store && bytes <= 16) {
      FirstStore& first = first_stores_[address + at];
      first = {group_id_, actor, {}};
      std::memcpy(first.before.data(), reinterpret_cast<const void*>(address), bytes);
    }
    if (!is_new && used->second != actor) used->second = kAny;
  }
}

void WorkerTracer::check_pair(Kind kind, const GlobalAccess& earlier, Thread& thread,
                              const Access& access, const Buffer& buffer, size_t offset) {
  const bool in_group = earlier.group == group_id_ || launch_->group_count == 1;
  if (in_group && (earlier.thread == static_cast<uint32_t>(thread.actor) ||
                   detector_.known(thread.actor, earlier.thread) >= earlier.clock)) {
    return;
  }
  const Shared::Place place = place_at(earlier.place);
  const FlagUse use = access.use;
  const Op op = access.op;
  const uint64_t group = in_group ? group_id_ : earlier.group;
  const bool one_warp =
      in_group && is_one_warp(earlier.thread, static_cast<uint32_t>(thread.actor));
  bool relies = false;
  const FirstStore* replaced = nullptr;  // by an exchange
  if (use == FlagUse::rounded_addition && place.use == use && !in_group) {
    kind = Kind::unordered_sums;  // unless something orders the two, see below
  } else if (use != FlagUse::none && place.use != FlagUse::none) {
    const bool both_write = kind == Kind::global_write_write;
    const bool both_volatile =
        use == FlagUse::volatile_access && place.use == FlagUse::volatile_access;
    // Of two volatile stores without any fence one may be lost.
    const bool lost = both_write && both_volatile && !order_.has_fenced(thread.actor);
    const bool too_narrow = !in_group && (place.block_only || thread.block_scope);
    if (!lost && !too_narrow) {
      if (op == Op::atomic && access.overwrites && place.use == FlagUse::volatile_access) {
        replaced = first_store(buffer.begin + offset, group, earlier.thread);
      }
      if ((use != FlagUse::volatile_access && replaced == nullptr) || one_warp) return;
      relies = both_volatile && order_.relies(thread.actor, group, earlier.thread, earlier.clock,
                                              place.token, token_of(access.pc), both_write);
      // A store by a group that cannot have seen the other one, and no flag passes between them.
      const bool blind =
          !relies && both_write && place.changes &&
          !has_used(buffer.begin + offset, in_group ? earlier.thread : kAny) &&
          order_.missing(thread.actor, group, earlier.thread, earlier.clock) == Missing::flag;
      if (!relies && !blind) return;
    }
  }
  // Asynchronous operations of one group are not compared here.
  const auto is_async = [](Op what) { return what == Op::async_load || what == Op::async_store; };
  if (in_group && (is_async(op) || is_async(place.op))) return;
  // A block that was the last to count may reset the counter by a plain store. A block that has
  // never looked at it cannot know that it is the last.
  if (place.use == FlagUse::atomic && !place.block_only && op == Op::store &&
      has_used(buffer.begin + offset, kAny)) {
    return;
  }
  if (order_.knows(thread.actor, group, earlier.thread, earlier.clock)) return;
  const FindingKey key{launch_->kernel, kind, place.token, token_of(access.pc)};
  Occurrence found;
  found.group = group_id_;
  found.block = thread.block->block_idx;
  found.later_thread = thread.thread_idx;
  found.op = op;
  found.offset = offset;
  found.in_group = in_group;
  found.earlier_block =
      in_group ? blocks_[earlier.thread / threads_per_block_] : block_of_group(earlier.group);
  found.earlier_thread = thread_index(earlier.thread);
  found.one_warp = one_warp;
  found.relies = relies;
  if (!findings_.contains(key)) {
    found.missing = order_.missing(thread.actor, group, earlier.thread, earlier.clock);
  }
  found.earlier_atomic = place.use == FlagUse::atomic;
  found.later_atomic = op == Op::atomic;
  found.detail = buffer.name;
  found.count = 1;
  // An exchange that brings back what was there before takes a message away.
  if (replaced != nullptr) {
    note_store(access);
    over_store_.before = replaced->before;
    over_store_.found.emplace_back(key, std::move(found));
    return;
  }
  // Stores of one value leave that value, whichever comes last.
  const bool both_store = kind == Kind::global_write_write && place.op == Op::store;
  if (both_store && shows_value(access)) {
    note_store(access);
    over_store_.found.emplace_back(key, std::move(found));
    return;
  }
  add_finding(key, found);
}

}  // namespace cookbook::simt::tracing
