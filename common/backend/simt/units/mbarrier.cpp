// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/mbarrier.hpp"

#include <string>

#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/state.hpp"

namespace cookbook {
namespace simt {
namespace {

constexpr uint32_t kMaxCount = (1u << 20) - 1;  // of arrivals and of bytes (PTX ISA, "mbarrier")

// The barrier's own eight bytes hold only this, to notice when they are overwritten: all state is
// in Mbarrier, where it can be named in messages.
uint64_t signature(const uint64_t* bar) {
  return 0x6d62617272696572ull ^ reinterpret_cast<uintptr_t>(bar);
}

std::string place(const uint64_t* bar, const Block* owner, uint32_t static_address) {
  if (static_address != 0) return fmt::format("shared address {:#x}", static_address);
  return fmt::format("dynamic shared memory + {}",
                     reinterpret_cast<const char*>(bar) - owner->shared);
}

std::string place(const uint64_t* bar) {
  const Block* owner = find_shared_block(bar);
  return place(bar, owner, owner != nullptr ? 0 : shared_address(bar));
}

std::string name(const char* what, const uint64_t* bar) {
  return fmt::format("{}: mbarrier at {}", what, place(bar));
}

void test_phase(Mbarrier& barrier, void* pc) {
  if (barrier.pending == 0 && barrier.pending_bytes < 0) {
    fail_at(pc,
            "{}: transaction bytes exceed expectation: {} more bytes landed in phase {} than were "
            "expected",
            name("mbarrier", barrier.address), -barrier.pending_bytes, barrier.phase);
  }
  if (barrier.pending == 0 && barrier.pending_bytes == 0) {
    ++barrier.phase;
    barrier.pending = barrier.count;
    for (Thread* thread : barrier.waiting) make_ready(thread);
    barrier.waiting.clear();
  }
}

// What marks call a barrier: its offset in its block.
uint32_t marked_address(const uint64_t* bar) {
  return timeline_is_on ? shared_address(bar) & 0xffffff : 0;
}

void expect(Mbarrier& barrier, uint32_t bytes, void* pc) {
  mark(timeline::Kind::expect_bytes, timeline::Edge::moment, marked_address(barrier.address),
       bytes);
  barrier.pending_bytes += bytes;
  if (barrier.pending_bytes > kMaxCount) {
    fail_at(pc, "{}: a phase expects at most 1048575 bytes, got {}",
            name("mbarrier_expect_tx", barrier.address), barrier.pending_bytes);
  }
}

void use(const Mbarrier& barrier, void* pc) {
  if (mbarrier_tracer != nullptr) {
    mbarrier_tracer->mbarrier_use(barrier.address, current_thread->actor, false, pc);
  }
}

void arrive(Mbarrier& barrier, uint32_t count, Signal signal, void* pc) {
  use(barrier, pc);
  lane_acted(pc);
  if (sync_tracer != nullptr) {
    mbarrier_release(barrier, current_thread->actor, *current_thread->block, signal);
  }
  mbarrier_complete_arrival(barrier, count, pc);
}

Mbarrier& own_mbarrier(const uint64_t* bar, const char* what, void* pc, int capability = 80) {
  require_capability(capability, what, pc);
  require_own_shared(bar, what, pc);
  return find_mbarrier(*current_thread->block->group, bar, what, pc);
}

bool complete(const Mbarrier& barrier, uint32_t parity) { return (barrier.phase & 1) != parity; }

bool in_cluster(const Mbarrier& barrier) { return barrier.owner->group->launch->cluster > 1; }

void acquire(Mbarrier& barrier, uint32_t parity, bool of_cluster, void* pc) {
  if (mbarrier_tracer == nullptr) return;
  const char* objects =
      of_cluster && in_cluster(barrier) ? barrier.cluster_object : barrier.phase_object;
  sync_tracer->acquire(&objects[parity], current_thread->actor);
  const bool idle = barrier.phase == 0;
  mbarrier_tracer->mbarrier_waited(idle, pc);
  lane_met(true);
  if (!idle) lane_acted(pc, true);
}

void require_parity(uint32_t parity, const char* what, void* pc) {
  if (parity > 1) fail_at(pc, "{}: the parity must be 0 or 1", what);
}

void wait(uint64_t* bar, uint32_t parity, bool of_cluster, const char* what, void* pc) {
  require_parity(parity, what, pc);
  Mbarrier& barrier = own_mbarrier(bar, what, pc);
  use(barrier, pc);
  const MarkedWait marked(timeline::Kind::wait_barrier, marked_address(bar));
  while (!complete(barrier, parity)) {
    barrier.waiting.push_back(current_thread);
    block_current("mbarrier", pc, &barrier);
  }
  acquire(barrier, parity, of_cluster, pc);
}

void arrive_at_rank(uint64_t* bar, uint32_t rank, Signal signal, void* pc) {
  require_capability(90, "mbarrier_arrive_cluster", pc);
  constexpr const char* kWhat = "mbarrier_arrive_cluster";
  auto* remote = static_cast<uint64_t*>(map_to_rank(bar, rank, kWhat, pc));
  arrive(find_mbarrier(*current_thread->block->group, remote, kWhat, pc), 1, signal, pc);
}

}  // namespace

std::string Mbarrier::describe() const {
  return fmt::format("at {} (phase {}: {} of {} arrivals and {} bytes pending)",
                     place(address, owner, static_address), phase, pending, count, pending_bytes);
}

Mbarrier& find_mbarrier(Group& group, const uint64_t* bar, const char* what, void* pc) {
  const auto& barriers = group_units(group).mbarriers;
  const auto found = barriers.find(bar);
  if (found == barriers.end()) fail_at(pc, "{} is not initialised", name(what, bar));
  if (*bar != signature(bar)) fail_at(pc, "{} was overwritten", name(what, bar));
  return *found->second;
}

uint32_t mbarrier_parity(const uint64_t* bar) {
  return own_mbarrier(bar, "mbarrier_arrive", COOKBOOK_SIMT_PC).phase & 1;
}

void mbarrier_arrive_expect_tx_at(uint64_t* bar, uint32_t bytes, bool at_cluster_scope) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "mbarrier_arrive_expect_tx";
  require_capability(90, kWhat, pc);
  Mbarrier& barrier = find_mbarrier(*current_thread->block->group, bar, kWhat, pc);
  expect(barrier, bytes, pc);
  arrive(barrier, 1, at_cluster_scope ? Signal::cluster : Signal::block, pc);
}

void mbarrier_complete_arrival(Mbarrier& barrier, uint32_t count, void* pc) {
  if (count > barrier.pending) {
    fail_at(pc, "{}: more arrivals in phase {} than the {} it was initialised for",
            name("mbarrier_arrive", barrier.address), barrier.phase, barrier.count);
  }
  barrier.pending -= count;
  test_phase(barrier, pc);
}

// Scopes, as the PTX ISA has them ("Scope"): a release and an acquire synchronise if each scope
// includes the other thread. The data of a copy is visible at any scope (CUTLASS relies on it for
// multicasts). An arrival at any scope shows that reads are complete, since only their order
// matters.
void mbarrier_release(Mbarrier& barrier, Actor who, const Block& from, Signal signal) {
  const uint32_t parity = barrier.phase & 1;
  const bool is_own = barrier.owner == &from;
  if (is_own || signal != Signal::store_async) {
    sync_tracer->release(&barrier.phase_object[parity], who,
                         is_own ? Knowledge::all : Knowledge::reads);
  }
  if (!in_cluster(barrier)) return;
  sync_tracer->release(&barrier.cluster_object[parity], who,
                       is_own || signal != Signal::block ? Knowledge::all : Knowledge::reads);
}

void mbarrier_complete_bytes(Mbarrier& barrier, uint32_t bytes, Actor actor, const Block& from,
                             Signal signal, void* pc) {
  if (sync_tracer != nullptr) mbarrier_release(barrier, actor, from, signal);
  barrier.pending_bytes -= bytes;
  test_phase(barrier, pc);
}

void mbarrier_group_end(Group& group) {
  for (const auto& [bar, barrier] : group_units(group).mbarriers) {
    const int64_t bytes = barrier->pending_bytes;
    if (bytes == 0) continue;
    fail_at(nullptr, "{}: at the kernel's end {} {} landed in phase {}", name("mbarrier", bar),
            bytes > 0 ? bytes : -bytes,
            bytes > 0 ? "expected bytes have not" : "more bytes than expected have",
            barrier->phase);
  }
}

}  // namespace simt

using namespace simt;

void mbarrier_init(uint64_t* bar, uint32_t arrivals) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(80, "mbarrier_init", pc);
  require_own_shared(bar, "mbarrier_init", pc);
  if (reinterpret_cast<uintptr_t>(bar) % 8 != 0) {
    fail_at(pc, "{} is not aligned to 8 bytes", name("mbarrier_init", bar));
  }
  if (arrivals < 1 || arrivals > kMaxCount) {
    fail_at(pc, "{}: 1 to 1048575 arrivals, got {}", name("mbarrier_init", bar), arrivals);
  }
  std::unique_ptr<Mbarrier>& slot = group_units(*current_thread->block->group).mbarriers[bar];
  if (slot != nullptr && *bar == signature(bar)) {
    fail_at(pc, "{} is initialised already: mbarrier_invalidate() it first",
            name("mbarrier_init", bar));
  }
  slot = std::make_unique<Mbarrier>();
  slot->address = bar;
  slot->count = slot->pending = arrivals;
  slot->owner = current_thread->block;
  if (find_shared_block(bar) == nullptr) slot->static_address = shared_address(bar);
  *bar = signature(bar);
  if (mbarrier_tracer != nullptr) mbarrier_tracer->mbarrier_init(bar, pc);
}

void mbarrier_invalidate(uint64_t* bar) {
  void* const pc = COOKBOOK_SIMT_PC;
  Mbarrier& barrier = own_mbarrier(bar, "mbarrier_invalidate", pc);
  if (!barrier.waiting.empty()) {
    fail_at(pc, "{}: a thread waits for it", name("mbarrier_invalidate", bar));
  }
  if (mbarrier_tracer != nullptr) mbarrier_tracer->mbarrier_invalidate(bar);
  *bar = 0;
  group_units(*current_thread->block->group).mbarriers.erase(bar);
}

void mbarrier_arrive(uint64_t* bar) {
  void* const pc = COOKBOOK_SIMT_PC;
  arrive(own_mbarrier(bar, "mbarrier_arrive", pc), 1, Signal::block, pc);
}

void mbarrier_arrive(uint64_t* bar, uint32_t count) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(90, "mbarrier_arrive of several", pc);
  arrive(own_mbarrier(bar, "mbarrier_arrive", pc), count, Signal::block, pc);
}

void mbarrier_arrive_expect_tx(uint64_t* bar, uint32_t bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  Mbarrier& barrier = own_mbarrier(bar, "mbarrier_arrive_expect_tx", pc, 90);
  expect(barrier, bytes, pc);
  arrive(barrier, 1, Signal::block, pc);
}

void mbarrier_expect_tx(uint64_t* bar, uint32_t bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  Mbarrier& barrier = own_mbarrier(bar, "mbarrier_expect_tx", pc, 90);
  use(barrier, pc);
  lane_acted(pc);
  expect(barrier, bytes, pc);
  test_phase(barrier, pc);
}

void mbarrier_arrive_cluster(uint64_t* bar, uint32_t rank) {
  arrive_at_rank(bar, rank, Signal::cluster, COOKBOOK_SIMT_PC);
}

void mbarrier_arrive_cluster_relaxed(uint64_t* bar, uint32_t rank) {
  arrive_at_rank(bar, rank, Signal::block, COOKBOOK_SIMT_PC);
}

bool mbarrier_try_wait(uint64_t* bar, uint32_t parity) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_parity(parity, "mbarrier_try_wait", pc);
  Mbarrier& barrier = own_mbarrier(bar, "mbarrier_try_wait", pc);
  use(barrier, pc);
  if (!complete(barrier, parity)) yield_current(pc);
  if (!complete(barrier, parity)) return false;
  acquire(barrier, parity, false, pc);
  return true;
}

void mbarrier_wait(uint64_t* bar, uint32_t parity) {
  wait(bar, parity, false, "mbarrier_wait", COOKBOOK_SIMT_PC);
}

void mbarrier_wait_cluster(uint64_t* bar, uint32_t parity) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(90, "mbarrier_wait_cluster", pc);
  wait(bar, parity, true, "mbarrier_wait_cluster", pc);
}

void fence_mbarrier_init() {
  require_capability(90, "fence_mbarrier_init", COOKBOOK_SIMT_PC);
  if (mbarrier_tracer != nullptr) mbarrier_tracer->mbarrier_init_fence();
}

}  // namespace cookbook
