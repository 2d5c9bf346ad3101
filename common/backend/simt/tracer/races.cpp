// SPDX-License-Identifier: MIT
#include "common/backend/simt/tracer/races.hpp"

#include <algorithm>
#include <bit>

namespace cookbook::simt {

void RaceDetector::begin_group(uint32_t blocks, uint32_t threads_per_block, size_t shared_bytes,
                               bool clusters, bool tensor_memory) {
  const uint32_t threads = blocks * threads_per_block;
  threads_ = threads;
  threads_per_block_ = threads_per_block;
  warps_per_block_ = (threads_per_block + kWarpSize - 1) / kWarpSize;
  has_clusters_ = clusters;
  pool_ = threads + 16;
  reads_ = size_t{threads} + pool_;
  starts_ = reads_ + (clusters ? threads : 0);
  fences_ = starts_ + (clusters ? blocks : 0);
  before_ = fences_ + (clusters ? blocks : 0);
  slots_ = before_ + (tensor_memory ? blocks * warps_per_block_ : 0);
  inits_.clear();
  unfenced_.clear();
  uses_.resize(blocks);
  for (std::vector<Use>& uses : uses_) uses.clear();
  if (thread_clocks_.size() < threads) thread_clocks_.resize(threads);
  for (ThreadClock& thread : thread_clocks_) {
    thread.row.reset();
    thread.fences.clear();
    thread.proxy = thread.after = {};
    thread.idle_wait_pc = 0;
  }
  clock_.assign(slots_, 1);
  base_.assign(slots_, 0);
  slot_issuer_.assign(slots_, 0);
  operations_.clear();
  last_operation_ = 0;
  objects_.clear();
  merge_a_.reset();
  merge_b_.reset();
  merge_result_.reset();
  tensor_cells_ = shared_bytes / 4 + 1;
  if (cells_.size() < tensor_cells_) cells_.resize(tensor_cells_);
  ++group_;
  ++interval_;
}

uint32_t RaceDetector::slot_of(Actor operation) const {
  return threads_ + static_cast<uint32_t>(-(operation + 1)) % pool_;
}

RaceDetector::View RaceDetector::view(Actor actor) const {
  if (actor >= 0) {
    const auto slot = static_cast<uint32_t>(actor);
    return {slot, clock_[slot], &thread_clocks_[slot].row, slot, clock_[slot]};
  }
  const Operation& op = operations_[static_cast<uint32_t>(-(actor + 1)) % kRememberedOperations];
  return {slot_of(actor), op.clock, &op.row, op.issuer, op.issuer_clock};
}

Actor RaceDetector::begin_async(Actor issuer) {
  const Actor operation = --last_operation_;
  const auto index = static_cast<uint32_t>(-(operation + 1)) % kRememberedOperations;
  if (operations_.size() <= index) operations_.resize(index + 1);
  Operation& op = operations_[index];
  const uint32_t slot = slot_of(operation);
  const auto thread = static_cast<uint32_t>(issuer);
  op.actor = operation;
  op.clock = ++clock_[slot];
  op.issuer = thread;
  op.issuer_clock = clock_[thread]++;  // what the issuer does from now on is not known to it
  op.next_before = 0;
  op.row = thread_clocks_[thread].row;
  slot_issuer_[slot] = thread;
  return operation;
}

bool RaceDetector::is_remembered(Actor operation) const {
  const auto index = static_cast<uint32_t>(-(operation + 1)) % kRememberedOperations;
  return index < operations_.size() && operations_[index].actor == operation;
}

void RaceDetector::full_barrier() {
  ++interval_;
  for (uint32_t i = 0; i < threads_; ++i) base_[i] = clock_[i]++;
  // Operations under way are not ordered by a barrier of the threads; but what some thread knew of
  // operations, everybody knows now.
  const Row* last = nullptr;
  for (uint32_t i = 0; i < threads_; ++i) {
    const Row* row = thread_clocks_[i].row.get();
    if (row == nullptr || row == last) continue;
    last = row;
    for (size_t k = threads_; k < slots_; ++k) base_[k] = std::max(base_[k], (*row)[k]);
  }
  for (uint32_t i = 0; i < threads_; ++i) thread_clocks_[i].row.reset();
}

uint32_t RaceDetector::known_clock(const View& knower, size_t slot) const {
  uint32_t known = base_[slot];
  if (*knower.row != nullptr) known = std::max(known, (**knower.row)[slot]);
  if (slot == knower.issuer) known = std::max(known, knower.issuer_clock);
  return known;
}

bool RaceDetector::ordered(const Entry& entry, const View& later, bool is_read) const {
  if (entry.slot == later.slot && (is_thread(later.slot) || entry.clock == later.clock))
    return true;
  if (base_[entry.slot] >= entry.clock) return true;
  if (known_clock(later, entry.slot) >= entry.clock) return true;
  return is_read && has_clusters_ && *later.row != nullptr &&
         (**later.row)[read_slot(entry.slot)] >= entry.clock;
}

bool RaceDetector::conflicts(const Entry& entry, const Access& access, const View& me,
                             bool is_read) const {
  const bool agree = (entry.atomic || entry.flag) && (access.atomic || access.flag);
  if (agree && !(entry.flag && access.flag)) return false;
  if (ordered(entry, me, is_read)) return false;
  if (flags_ == nullptr || !is_thread(entry.slot)) return !agree;
  const auto thread = static_cast<Actor>(me.issuer);
  if (!agree) return !flags_->orders(thread, entry.slot, entry.clock);
  return warp_of(entry.slot) != warp_of(me.issuer) &&
         flags_->relies(thread, entry.slot, entry.clock, entry.pc, access.pc,
                        access.write && !is_read);
}

void RaceDetector::note_deferred(bool differs) {
  for (const SharedHazard& found : deferred_) {
    if (!differs) break;
    SharedHazard& hazard = hazards_[Key(found.kind, found.earlier_pc, found.later_pc)];
    const uint64_t count = hazard.count + 1;
    if (count == 1) hazard = found;
    hazard.count = count;
  }
  deferred_.clear();
}

void RaceDetector::add_knowledge(Row& into, const View& from, Knowledge what) const {
  if (*from.row != nullptr) {
    const uint32_t* row = (*from.row)->data();
    const size_t first = what == Knowledge::all     ? 0
                         : what == Knowledge::reads ? size_t{threads_}
                                                    : starts_;
    for (size_t k = first; k < slots_; ++k) into[k] = std::max(into[k], row[k]);
  }
  if (what == Knowledge::all) {
    into[from.slot] = std::max(into[from.slot], from.clock);
    into[from.issuer] = std::max(into[from.issuer], from.issuer_clock);
  } else if (what == Knowledge::reads && !is_thread(from.slot)) {
    into[from.slot] = std::max(into[from.slot], from.clock);
  }
  if (!has_clusters_) return;
  if (what != Knowledge::starts) {
    uint32_t& reads = into[reads_ + from.issuer];
    reads = std::max(reads, from.issuer_clock);
  }
  into[starts_ + block_of(from.issuer)] = 1;
}

void RaceDetector::join(const Actor* threads, size_t count) {
  auto row = std::make_shared<Row>(slots_, 0);
  const Row* last = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const auto thread = static_cast<uint32_t>(threads[i]);
    const Row* own = thread_clocks_[thread].row.get();
    if (own == nullptr || own == last) {
      (*row)[thread] = std::max((*row)[thread], clock_[thread]);
      if (has_clusters_) {
        (*row)[reads_ + thread] = (*row)[thread];
        (*row)[starts_ + block_of(thread)] = 1;
      }
    } else {
      add_knowledge(*row, view(threads[i]), Knowledge::all);
      last = own;
    }
  }
  for (size_t i = 0; i < count; ++i) {
    thread_clocks_[threads[i]].row = row;
    ++clock_[threads[i]];
  }
}

RaceDetector::RowPointer RaceDetector::merged(const RowPointer& a, const RowPointer& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (a == merge_a_ && b == merge_b_) return merge_result_;
  auto row = std::make_shared<Row>(*a);
  for (size_t k = 0; k < slots_; ++k) (*row)[k] = std::max((*row)[k], (*b)[k]);
  merge_a_ = a;
  merge_b_ = b;
  merge_result_ = row;
  return merge_result_;
}

void RaceDetector::release(const void* object, Actor actor, Knowledge what) {
  if (actor < 0 && !is_remembered(actor)) return;
  RowPointer& carried = objects_[object];
  std::shared_ptr<Row> row;
  if (carried == nullptr) {
    row = std::make_shared<Row>(slots_, 0);
  } else if (carried.use_count() == 1) {
    row = std::const_pointer_cast<Row>(carried);  // nobody else sees it: change it in place
  } else {
    row = std::make_shared<Row>(*carried);
  }
  add_knowledge(*row, view(actor), what);
  carried = std::move(row);
  if (actor >= 0) ++clock_[actor];
}

void RaceDetector::acquire(const void* object, Actor actor) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  RowPointer* row = nullptr;
  if (actor >= 0) {
    row = &thread_clocks_[actor].row;
  } else {
    if (!is_remembered(actor)) return;
    row = &operations_[static_cast<uint32_t>(-(actor + 1)) % kRememberedOperations].row;
  }
  *row = merged(*row, found->second);
}

void RaceDetector::proxy_fence(Actor thread) {
  const View me = view(thread);
  std::erase_if(unfenced_, [&](const void* bar) {
    const auto found = inits_.find(bar);
    if (found == inits_.end() || found->second.fence_thread != kNobody) return true;
    if (!knows_init(found->second, me)) return false;
    found->second.fence_thread = me.slot;
    found->second.fence_clock = me.clock;
    return true;
  });
  thread_clocks_[thread].proxy = {interval_, thread_clocks_[thread].row};
  // A new clock, which separates stores before the fence from those after it.
  thread_clocks_[thread].fences.push_back(clock_[thread]++);
}

// ---- mbarriers ----

RaceDetector::Row& RaceDetector::own_row(Actor thread) {
  RowPointer& row = thread_clocks_[thread].row;
  auto copy = row == nullptr ? std::make_shared<Row>(slots_, 0) : std::make_shared<Row>(*row);
  Row& result = *copy;
  row = std::move(copy);
  return result;
}

void RaceDetector::barrier_init(const void* bar, size_t offset, Actor thread, uint32_t pc) {
  const auto slot = static_cast<uint32_t>(thread);
  inits_[bar] = {slot, clock_[slot], pc, offset};
  unfenced_.push_back(bar);
}

void RaceDetector::barrier_init_fence(Actor thread) {
  const auto slot = static_cast<uint32_t>(thread);
  uint32_t mark = 0;
  if (has_clusters_) {
    const size_t at = fences_ + block_of(slot);
    mark = ++clock_[at];
    own_row(thread)[at] = mark;
  }
  for (auto& [bar, init] : inits_) {
    if (init.thread != slot) continue;
    if (init.fence_thread == kNobody) {
      init.fence_thread = slot;
      init.fence_clock = clock_[slot];
    }
    if (init.mark == 0) init.mark = mark;
  }
  ++clock_[slot];
}

bool RaceDetector::knows_init(const Init& init, const View& knower) const {
  if (knower.slot == init.thread || known_clock(knower, init.thread) >= init.clock) return true;
  return init.mark != 0 && known_clock(knower, fences_ + block_of(init.thread)) >= init.mark;
}

void RaceDetector::barrier_use(const void* bar, const Access& access, uint32_t owner) {
  if (access.actor < 0 && !is_remembered(access.actor)) return;
  const auto found = inits_.find(bar);
  if (found == inits_.end()) return;
  const Init& init = found->second;
  const View me = view(access.actor);
  if (owner != block_of(me.issuer)) note_use(owner, me, access.pc, false, init.offset);
  const Entry entry{init.clock, init.pc, init.thread & kSlots, 0, false, false, false, false};
  if (!knows_init(init, me)) {
    report(SharedHazard::Kind::barrier_unordered, &entry, access, me, init.offset);
    return;
  }
  if (!access.async_proxy) return;
  const bool fenced =
      init.fence_thread != kNobody &&
      (me.slot == init.fence_thread || known_clock(me, init.fence_thread) >= init.fence_clock ||
       (init.mark != 0 && known_clock(me, fences_ + block_of(init.thread)) >= init.mark));
  if (!fenced) report(SharedHazard::Kind::barrier_unfenced, &entry, access, me, init.offset);
}

// ---- the begin and end of blocks ----

void RaceDetector::note_use(uint32_t owner, const View& me, uint32_t pc, bool write,
                            size_t offset) {
  std::vector<Use>& uses = uses_[owner];
  if (uses.empty()) uses.resize(slots_);
  uses[write ? me.slot : read_slot(me.slot)] = {me.clock, pc, me.issuer, offset};
}

void RaceDetector::check_started(uint32_t owner, const View& me, const Access& access,
                                 size_t offset) {
  if (known_clock(me, starts_ + owner) != 0) return;
  report(SharedHazard::Kind::not_started, nullptr, access, me, offset);
}

void RaceDetector::check_exits() {
  for (uint32_t block = 0; block < uses_.size(); ++block) {
    if (uses_[block].empty()) continue;
    // The block lasts until its last thread ends: what any of them knows is over by then.
    Row known = base_;
    const Row* last = nullptr;
    for (uint32_t i = 0; i < threads_per_block_; ++i) {
      const Row* row = thread_clocks_[block * threads_per_block_ + i].row.get();
      if (row == nullptr || row == last) continue;
      last = row;
      for (size_t k = 0; k < slots_; ++k) known[k] = std::max(known[k], (*row)[k]);
    }
    for (size_t slot = 0; slot < slots_; ++slot) {
      const Use& use = uses_[block][slot];
      if (use.clock == 0 || known[slot] >= use.clock) continue;
      const bool is_async = slot >= threads_ && slot < reads_;
      const auto kind = block_of(use.issuer) == block ? SharedHazard::Kind::exit_async
                                                      : SharedHazard::Kind::exit_remote;
      SharedHazard& hazard = hazards_[Key(kind, use.pc, 0)];
      if (hazard.count++ != 0) continue;
      hazard.kind = kind;
      hazard.earlier_pc = use.pc;
      hazard.earlier_thread = use.issuer;
      hazard.earlier_async = is_async;
      hazard.later_thread = block * threads_per_block_;
      hazard.offset = use.offset;
    }
  }
}

void RaceDetector::idle_wait(Actor thread, uint32_t pc) {
  thread_clocks_[thread].idle_wait_pc = pc;
}

void RaceDetector::report(SharedHazard::Kind kind, const Entry* earlier, const Access& later,
                          const View& me, size_t offset) {
  const uint32_t earlier_pc = earlier != nullptr ? earlier->pc : 0;
  const bool deferred = later.deferred && kind == SharedHazard::Kind::write_after_write;
  const Key key(kind, earlier_pc, later.pc);
  const bool is_new = !deferred || !hazards_.contains(key);
  SharedHazard& hazard = deferred ? deferred_.emplace_back() : hazards_[key];
  if (!deferred && hazard.count++ != 0) return;
  hazard.kind = kind;
  hazard.earlier_pc = earlier_pc;
  hazard.later_pc = later.pc;
  hazard.later_thread = me.issuer;
  hazard.later_async = later.actor < 0;
  hazard.later_atomic = later.atomic;
  hazard.offset = offset;
  hazard.write = later.write;
  if (kind == SharedHazard::Kind::read_after_write || kind == SharedHazard::Kind::uninitialised) {
    hazard.idle_wait_pc = thread_clocks_[me.issuer].idle_wait_pc;
  }
  if (earlier == nullptr) return;
  hazard.earlier_async = !is_thread(earlier->slot);
  hazard.earlier_thread = hazard.earlier_async ? slot_issuer_[earlier->slot] : earlier->slot;
  hazard.earlier_atomic = earlier->atomic;
  hazard.relies = earlier->flag && later.flag;
  if (is_new && flags_ != nullptr && !hazard.earlier_async) {
    hazard.missing = flags_->missing(static_cast<Actor>(me.issuer), earlier->slot, earlier->clock);
  }
}

void RaceDetector::check_proxy(const Cell& cell, size_t offset, uint32_t bytes,
                               const Access& access, const View& me) {
  for (int i = 0; i < cell.writer_count; ++i) {
    const Entry& entry = cell.writers[i];
    if (entry.async_proxy || !is_thread(entry.slot) || (entry.bytes & bytes) == 0) continue;
    // The last fence that the operation knows of must come after the store.
    const std::vector<uint32_t>& fences = thread_clocks_[entry.slot].fences;
    const auto after = std::upper_bound(fences.begin(), fences.end(), known_clock(me, entry.slot));
    if (after != fences.begin() && *(after - 1) >= entry.clock) continue;
    report(access.write ? SharedHazard::Kind::proxy_store : SharedHazard::Kind::proxy_load, &entry,
           access, me, offset);
  }
}

// An ordinary load and the write of the next answer are ordered by a proxy fence between the two
// (PTX ISA, "Memory Consistency Model", "Causality Order"): of the thread that read, or of the one
// that asks, once it knows of the read.
void RaceDetector::check_answer(const Cell& cell, size_t offset, uint32_t bytes,
                                const Access& access, const View& me) {
  const Fence& asks = thread_clocks_[me.issuer].proxy;
  for (int i = 0; i < cell.reader_count; ++i) {
    const Entry& entry = cell.readers[i];
    if (!is_thread(entry.slot) || (entry.bytes & bytes) == 0) continue;
    const size_t reads = read_slot(entry.slot);
    const std::vector<uint32_t>& fences = thread_clocks_[entry.slot].fences;
    const uint32_t known = std::max(known_clock(me, entry.slot), known_clock(me, reads));
    const auto after = std::upper_bound(fences.begin(), fences.end(), known);
    if (after != fences.begin() && *(after - 1) >= entry.clock) continue;
    const bool asks_later = asks.interval > cell.interval ||
                            (asks.interval == cell.interval && asks.row != nullptr &&
                             std::max((*asks.row)[entry.slot], (*asks.row)[reads]) >= entry.clock);
    if (asks_later || !ordered(entry, me, true)) continue;  // a race, which is reported
    report(SharedHazard::Kind::proxy_answer, &entry, access, me, offset);
  }
}

void RaceDetector::check_cell(Cell& cell, size_t offset, uint32_t bytes, const Access& access,
                              const View& me) {
  using Kind = SharedHazard::Kind;
  if (cell.group != group_) {
    cell.group = group_;
    cell.interval = interval_;
    cell.writer_count = cell.reader_count = cell.initialised = 0;
    cell.ordinary_stores = false;
  }
  if (access.is_answer) check_answer(cell, offset, bytes, access, me);
  if (cell.interval != interval_) {
    // Reads by threads before a full barrier are ordered; those by operations need not be.
    int kept = 0;
    for (int i = 0; i < cell.reader_count; ++i) {
      if (!is_thread(cell.readers[i].slot)) cell.readers[kept++] = cell.readers[i];
    }
    cell.reader_count = static_cast<uint8_t>(kept);
    cell.interval = interval_;
  }
  if (access.async_proxy && cell.ordinary_stores) check_proxy(cell, offset, bytes, access, me);

  for (int i = 0; i < cell.writer_count; ++i) {
    const Entry& entry = cell.writers[i];
    if ((entry.bytes & bytes) == 0 || !conflicts(entry, access, me, false)) continue;
    report(access.write ? Kind::write_after_write : Kind::read_after_write, &entry, access, me,
           offset);
  }
  if ((!access.write || (access.atomic && !access.overwrites)) &&
      (cell.initialised & bytes) != bytes && !access.may_be_undefined) {
    report(Kind::uninitialised, nullptr, access, me, offset);
  }
  const Entry mine{me.clock,      access.pc,          me.slot & kSlots, bytes & 0xf,
                   access.atomic, access.async_proxy, access.flag,      access.tensor_core};
  if (access.write) {
    int kept = 0;
    for (int i = 0; i < cell.reader_count; ++i) {
      const Entry& entry = cell.readers[i];
      if ((entry.bytes & bytes) != 0 && conflicts(entry, access, me, true)) {
        report(Kind::write_after_read, &entry, access, me, offset);
      }
      // A later write that knows of this one knows of the reads before it, or they were reported.
      if ((entry.bytes & ~bytes) != 0) cell.readers[kept++] = entry;
    }
    cell.reader_count = static_cast<uint8_t>(kept);
    kept = 0;
    for (int i = 0; i < cell.writer_count; ++i) {
      cell.writers[i].bytes = cell.writers[i].bytes & ~bytes & 0xf;
      if (cell.writers[i].bytes != 0) cell.writers[kept++] = cell.writers[i];
    }
    cell.writers[kept++] = mine;  // the others have other bytes: never more than four
    cell.writer_count = static_cast<uint8_t>(kept);
    cell.initialised |= static_cast<uint8_t>(bytes);
    if (is_thread(me.slot)) cell.ordinary_stores = true;
    return;
  }
  // A reader may replace another of the same actor, or one that it knows of: what is ordered
  // after it is ordered after that one too.
  int slot = -1;
  for (int i = 0; i < cell.reader_count && slot < 0; ++i) {
    const Entry& entry = cell.readers[i];
    if ((entry.bytes & ~bytes) == 0 && ordered(entry, me, true)) slot = i;
  }
  if (slot < 0 && cell.reader_count < kReaders) slot = cell.reader_count++;
  if (slot < 0) {
    // Full: keep readers of as many different warps as possible, since the lanes of a warp are
    // mostly ordered together.
    const auto warp = [this](const Entry& entry) { return warp_of(entry.slot); };
    for (int i = 0; i < kReaders; ++i) {
      if (warp(cell.readers[i]) == warp(mine)) return;
      for (int j = 0; j < i; ++j) {
        if (warp(cell.readers[i]) == warp(cell.readers[j])) slot = i;
      }
    }
    if (slot < 0) return;
  }
  cell.readers[slot] = mine;
}

void RaceDetector::access(size_t offset, size_t bytes, const Access& access, uint32_t owner) {
  const View me = view(access.actor);
  const bool is_remote = has_clusters_ && owner != block_of(me.issuer);
  if (is_remote) check_started(owner, me, access, offset);
  if (is_remote || (access.actor < 0 && !access.may_outlive))
    note_use(owner, me, access.pc, access.write, offset);
  const size_t end = offset + bytes;
  for (size_t at = offset; at < end;) {
    const size_t next = std::min(end, (at & ~size_t{3}) + 4);
    const auto mask = static_cast<uint32_t>(((1u << (next - at)) - 1) << (at & 3));
    check_cell(cells_[at >> 2], at, mask, access, me);
    at = next;
  }
}

// ---- tensor memory: a cell for a column of 32 lanes, its four parts are eight lanes each ----

template <class Visit>
void RaceDetector::for_each_tensor_cell(uint32_t owner, uint32_t first, uint32_t columns,
                                        uint32_t groups, const Visit& visit) {
  constexpr uint32_t kQuarters = 4, kColumns = 512;
  const size_t needed = tensor_cells_ + size_t{owner + 1} * kQuarters * kColumns;
  if (cells_.size() < needed) cells_.resize(needed);
  for (uint32_t quarter = 0; quarter < kQuarters; ++quarter) {
    const uint32_t part = groups >> (4 * quarter) & 0xf;
    const size_t start = tensor_cells_ + size_t{owner * kQuarters + quarter} * kColumns;
    for (uint32_t c = first; part != 0 && c < first + columns; ++c) visit(start + c, part);
  }
}

void RaceDetector::tensor_access(uint32_t owner, uint32_t first, uint32_t columns, uint32_t groups,
                                 const Access& access) {
  const View me = view(access.actor);
  for_each_tensor_cell(owner, first, columns, groups, [&](size_t index, uint32_t part) {
    Cell& cell = cells_[index];
    const size_t offset = index * 4 + static_cast<size_t>(std::countr_zero(part));
    if (cell.group == group_) check_fences(cell, offset, part, access, me);
    check_cell(cell, offset, part, access, me);
  });
}

void RaceDetector::tensor_waited(Actor operation) {
  if (!is_remembered(operation)) return;
  Operation& op = operations_[static_cast<uint32_t>(-(operation + 1)) % kRememberedOperations];
  op.next_before = clock_[before_ + warp_of(op.issuer)] + 1;
}

void RaceDetector::tensor_before_fence(Actor thread) {
  const size_t at = before_ + warp_of(static_cast<uint32_t>(thread));
  const uint32_t number = ++clock_[at];
  own_row(thread)[at] = number;
}

void RaceDetector::tensor_after_fence(Actor thread) {
  thread_clocks_[thread].after = {interval_, thread_clocks_[thread].row};
}

// Two accesses of the same tensor memory, in order: what orders two warps has a fence on either
// side. The earlier warp fences after its tcgen05.wait, and the later thread must know of that; a
// commit does it for an mma. The later thread fences when it knows of the earlier access. One warp
// needs only the second fence, between an mma and a load or store.
void RaceDetector::check_fences(const Cell& cell, size_t offset, uint32_t part,
                                const Access& access, const View& me) {
  using Kind = SharedHazard::Kind;
  const Fence& after = thread_clocks_[me.issuer].after;
  const auto check = [&](const Entry& entry, bool is_read) {
    if ((entry.bytes & part) == 0 || !ordered(entry, me, is_read)) return;
    const Operation* earlier = operation_of(entry);
    const uint32_t issuer = earlier != nullptr ? earlier->issuer : slot_issuer_[entry.slot];
    const bool one_warp = warp_of(issuer) == warp_of(me.issuer);
    if (!entry.tensor_core && !one_warp && earlier != nullptr &&
        known_clock(me, before_ + warp_of(issuer)) < earlier->next_before) {
      const bool uses = !is_read && !access.write && access.tensor_core;
      if (uses || !hazards_.contains(Key(Kind::tensor_unfenced, entry.pc, access.pc))) {
        report(uses ? Kind::tensor_unfenced : Kind::tensor_before, &entry, access, me, offset);
      }
    }
    if (one_warp && (access.tensor_core || !entry.tensor_core)) return;
    // What a full barrier has taught since the fence counts as known before it.
    const bool fenced =
        after.interval != 0 && (base_[entry.slot] >= entry.clock ||
                                (after.row != nullptr && (*after.row)[entry.slot] >= entry.clock));
    if (!fenced) report(Kind::tensor_after, &entry, access, me, offset);
  };
  for (int i = 0; i < cell.writer_count; ++i) check(cell.writers[i], false);
  for (int i = 0; access.write && i < cell.reader_count; ++i) check(cell.readers[i], true);
}

// Null: it was long ago.
const RaceDetector::Operation* RaceDetector::operation_of(const Entry& entry) const {
  // Operations take the clocks of the pool in turn, and the first one of each has clock 2.
  const Actor operation =
      -static_cast<Actor>(entry.slot - threads_ + 1 + (entry.clock - 2) * pool_);
  return is_remembered(operation)
             ? &operations_[static_cast<uint32_t>(-(operation + 1)) % kRememberedOperations]
             : nullptr;
}

void RaceDetector::tensor_reset(uint32_t owner, uint32_t first, uint32_t columns) {
  for_each_tensor_cell(owner, first, columns, 0xffff,
                       [&](size_t index, uint32_t) { cells_[index].group = 0; });
}

bool RaceDetector::is_known_to_somebody(const Entry& entry) const {
  for (uint32_t i = 0; i < threads_; ++i) {
    const Row* row = thread_clocks_[i].row.get();
    if (row != nullptr && (*row)[entry.slot] >= entry.clock) return true;
  }
  return false;
}

// An access that some thread has waited for is over, whatever orders that before here: a barrier
// that releases nothing is enough.
void RaceDetector::tensor_freed(uint32_t owner, uint32_t first, uint32_t columns,
                                const Access& access) {
  const View me = view(access.actor);
  for_each_tensor_cell(owner, first, columns, 0xffff, [&](size_t index, uint32_t) {
    Cell& cell = cells_[index];
    if (cell.group != group_) return;
    const auto check = [&](const Entry& entry, bool is_read) {
      if (ordered(entry, me, is_read) || is_known_to_somebody(entry)) return;
      report(is_read ? SharedHazard::Kind::write_after_read : SharedHazard::Kind::write_after_write,
             &entry, access, me,
             index * 4 + static_cast<size_t>(std::countr_zero(entry.bytes + 0u)));
    };
    for (int i = 0; i < cell.writer_count; ++i) check(cell.writers[i], false);
    for (int i = 0; i < cell.reader_count; ++i) check(cell.readers[i], true);
    cell.group = 0;
  });
}

}  // namespace cookbook::simt
