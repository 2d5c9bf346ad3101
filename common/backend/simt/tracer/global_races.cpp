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
    Occurrence& found = findings_[key];
    const uint64_t count = found.count + 1;
    if (count == 1) found = occurrence;
    found.count = count;
  }
  over_store_.found.clear();
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
  flag_acquire(thread, done.address, done.clock, false);
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
                                bool block_only) {
  constexpr unsigned kPollsBetweenYields = 256;  // the block waited for may need this CPU
  if (++polls_ % kPollsBetweenYields == 0) sched_yield();
  order_.acquire(flag, thread.actor, clock, block_only);
}

void WorkerTracer::memory_fence(bool block_only) {
  if (!group_->traced) return;
  finish_accesses(*current_thread);
  order_.fence(current_thread->actor, block_only);
}

uint3 WorkerTracer::block_of_group(uint64_t group) const {
  return block_index_in(*launch_, group * launch_->blocks_per_group);
}

uint32_t WorkerTracer::place_of(Site& site, FlagUse use) {
  if (site.number == 0) {
    Shared& state = shared();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.places.size() >> GlobalAccess::kPlaceBits != 0) return 0;
    site.number = static_cast<uint16_t>(state.places.size());
    state.places.push_back({site.key.pc, use, site.key.op, current_thread->block_scope});
  }
  return site.number;
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
  if (use != FlagUse::none && use < FlagUse::addition) {
    for (size_t at = 0; at < bytes; at += 4) flags_used_.insert(address + at);
  }
  const auto actor = static_cast<uint32_t>(thread.actor);
  const uint32_t place = place_of(sites_[site], use);
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
  if (use == FlagUse::rounded_addition && place.use == use && !in_group) {
    kind = Kind::unordered_sums;  // unless something orders the two, see below
  } else if (use != FlagUse::none && place.use != FlagUse::none) {
    // Of two volatile stores without any fence one may be lost.
    const bool lost = kind == Kind::global_write_write && use == FlagUse::volatile_access &&
                      place.use == FlagUse::volatile_access && !order_.has_fenced(thread.actor);
    const bool too_narrow = !in_group && (place.block_only || thread.block_scope);
    if (!lost && !too_narrow) return;
  }
  // Asynchronous operations of one group are not compared here.
  const auto is_async = [](Op what) { return what == Op::async_load || what == Op::async_store; };
  if (in_group && (is_async(op) || is_async(place.op))) return;
  // A block that was the last to count may reset the counter by a plain store. A block that has
  // never looked at it cannot know that it is the last.
  if (place.use == FlagUse::atomic && !place.block_only && op == Op::store &&
      flags_used_.contains(buffer.begin + offset)) {
    return;
  }
  const uint64_t group = in_group ? group_id_ : earlier.group;
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
  found.one_warp = in_group && is_one_warp(earlier.thread, static_cast<uint32_t>(thread.actor));
  found.earlier_atomic = place.use == FlagUse::atomic;
  found.later_atomic = op == Op::atomic;
  found.detail = buffer.name;
  found.count = 1;
  // Stores of one value leave that value, whichever comes last.
  const bool both_store = kind == Kind::global_write_write && place.op == Op::store;
  if (both_store && shows_value(access)) {
    note_store(access);
    over_store_.found.emplace_back(key, std::move(found));
    return;
  }
  const auto [at, is_new] = findings_.try_emplace(key, std::move(found));
  if (!is_new) ++at->second.count;
}

}  // namespace cookbook::simt::tracing
