// SPDX-License-Identifier: MIT
// Accesses of different groups, and of the threads of one, to the same global memory.
#include <sched.h>

#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

void WorkerTracer::finish_volatile_load(Thread& thread) {
  if (open_volatile_loads_ == 0) return;
  VolatileLoad& load = volatile_loads_[static_cast<uint32_t>(thread.actor)];
  if (load.address == 0) return;
  --open_volatile_loads_;
  const VolatileLoad done = std::exchange(load, {});
  flag_acquire(thread, done.address, done.clock);
}

void WorkerTracer::enter_basic_block(void* pc) {
  finish_volatile_load(*current_thread);
  bb_park(pc);
}

void WorkerTracer::flag_acquire(const Thread& thread, uintptr_t address, uint32_t clock) {
  constexpr unsigned kPollsBetweenYields = 256;  // the block waited for may need this CPU
  if (++polls_ % kPollsBetweenYields == 0) sched_yield();
  order_.acquire(address, thread.actor, clock);
}

void WorkerTracer::memory_fence() {
  finish_volatile_load(*current_thread);
  if (launch_->group_count > 1) order_.fence(current_thread->actor);
}

uint3 WorkerTracer::block_of_group(uint64_t group) const {
  return index_in(launch_->grid, group * launch_->blocks_per_group);
}

uint32_t WorkerTracer::place_of(Site& site, FlagUse use) {
  if (site.number == 0) {
    Shared& state = shared();
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.places.size() >> GlobalAccess::kPlaceBits != 0) return 0;
    site.number = static_cast<uint16_t>(state.places.size());
    state.places.push_back({site.key.pc, use, site.key.op});
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
  if (buffer.cells == nullptr || group_id_ >= kComparedGroups) return;
  order_.touch(thread.actor);
  if (use != FlagUse::none) {
    for (size_t at = 0; at < bytes; at += 4) flags_used_.insert(address + at);
  }
  const auto actor = static_cast<uint32_t>(thread.actor);
  const uint32_t place = place_of(sites_[site], use);
  if (place == 0) return;
  const bool alone = launch_->group_count == 1;
  const uint64_t mine =
      GlobalAccess{group_id_, detector_.clock_of(thread.actor), actor, place}.to_word(alone);
  const size_t first = (address - buffer.begin) / 4;
  const size_t last = (address + bytes - 1 - buffer.begin) / 4;
  const bool writes = op != Op::load && op != Op::async_load && use != FlagUse::atomic_load;
  const auto is_mine = [mine, alone](uint64_t word) {
    constexpr int kAt = GlobalAccess::kGroupAt;
    return alone ? word != 0 : word >> kAt == mine >> kAt;
  };
  const auto check = [&](Kind kind, uint64_t earlier, size_t at) {
    if (earlier == 0) return;
    if (!is_mine(earlier)) {
      report_global(kind, GlobalAccess::of(earlier, alone), use, thread, op, buffer, at, site);
    } else if (use == FlagUse::none) {
      check_in_group(kind, GlobalAccess::of(earlier, alone), thread, op, buffer, at, site);
    }
  };
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (size_t at = first; at <= last; ++at) {
    GlobalCell& cell = buffer.cells[at];
    // Elements of fewer than four bytes may share a cell: only whole cells are compared.
    const bool whole =
        buffer.begin + at * 4 >= address && buffer.begin + at * 4 + 4 <= address + bytes;
    if (!whole) continue;
    uint64_t writer = cell.writer.load(kRelaxed);
    if (writes) {
      if (is_mine(writer)) {
        cell.writer.store(mine, kRelaxed);
      } else {
        writer = cell.writer.exchange(mine);  // another worker may write it now
        check(Kind::global_write_write, writer, at);
      }
      check(Kind::global_read_write, cell.reader.load(kRelaxed), at);
      check(Kind::global_read_write, cell.other_reader.load(kRelaxed), at);
    } else {
      const uint64_t reader = cell.reader.load(kRelaxed);
      if (reader == 0 || is_mine(reader)) {
        if (reader >> 28 != mine >> 28) cell.reader.store(mine, kRelaxed);
      } else if (cell.other_reader.load(kRelaxed) >> 28 != mine >> 28) {
        cell.other_reader.store(mine, kRelaxed);
      }
      check(Kind::global_write_read, writer, at);
    }
  }
}

void WorkerTracer::check_in_group(Kind kind, const GlobalAccess& earlier, Thread& thread, Op op,
                                  const Buffer& buffer, size_t cell, size_t site) {
  const auto is_plain = [](Op what) { return what == Op::load || what == Op::store; };
  if (kind == Kind::global_write_write || !is_plain(op)) return;
  if (earlier.thread == static_cast<uint32_t>(thread.actor)) return;
  if (detector_.known(thread.actor, earlier.thread) >= earlier.clock) return;
  const Shared::Place place = place_at(earlier.place);
  if (place.use != FlagUse::none || !is_plain(place.op)) return;
  Occurrence& found = note(kind, place.token, pc_of(sites_[site].key.pc), thread, op);
  if (found.count != 1) return;
  found.offset = cell * 4;
  found.in_group = true;
  found.earlier_block = blocks_[earlier.thread / threads_per_block_];
  found.earlier_thread = thread_index(earlier.thread);
  found.detail = buffer.name;
}

void WorkerTracer::report_global(Kind kind, const GlobalAccess& earlier, FlagUse use,
                                 Thread& thread, Op op, const Buffer& buffer, size_t cell,
                                 size_t site) {
  const Shared::Place place = place_at(earlier.place);
  if (use != FlagUse::none && place.use != FlagUse::none) return;
  // A block that was the last to count may reset the counter by a plain store. A block that has
  // never looked at it cannot know that it is the last.
  if (place.use == FlagUse::atomic && op == Op::store &&
      flags_used_.contains(buffer.begin + cell * 4)) {
    return;
  }
  if (order_.knows(thread.actor, earlier.group, earlier.thread, earlier.clock)) return;
  Occurrence& found = note(kind, place.token, pc_of(sites_[site].key.pc), thread, op);
  if (found.count != 1) return;
  found.offset = cell * 4;
  found.earlier_block = block_of_group(earlier.group);
  found.earlier_atomic = place.use == FlagUse::atomic;
  found.later_atomic = op == Op::atomic;
  found.detail = buffer.name;
}

}  // namespace cookbook::simt::tracing
