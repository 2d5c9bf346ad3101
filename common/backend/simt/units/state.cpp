// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/state.hpp"

#include <string>

#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/units/tmem_state.hpp"
#include "common/backend/simt/units/wgmma_state.hpp"

namespace cookbook::simt {

BlockUnits::BlockUnits() = default;
BlockUnits::~BlockUnits() = default;

namespace {

template <class T, class Holder>
T& unit_state(Holder& holder) {
  if (holder.unit_state == nullptr) holder.unit_state = std::make_unique<T>();
  return static_cast<T&>(*holder.unit_state);
}

void thread_exit(Thread& thread) {
  if (thread.unit_state == nullptr) return;
  cp_async_thread_exit(thread);
  bulk_thread_exit(thread);
  WgmmaThreadState& wgmma = thread_units(thread).wgmma;
  wgmma.issued = wgmma.committed = wgmma.batches = 0;
  wgmma.fenced = false;
  thread_units(thread).tmem_loads.clear();
  wgmma.pending.clear();  // and not a new one: std::deque allocates before it holds anything
}

void block_begin(Block& block) {
  if (block.unit_state == nullptr) return;
  block_units(block).warpgroups.clear();
  block_units(block).tensor_memory.reset();
  block_units(block).register_requests.clear();
  block_units(block).register_calls.clear();
}

void group_begin(Group& group) {
  if (group.unit_state == nullptr) return;
  group_units(group).mbarriers.clear();
  group_units(group).clc_declined = false;
}

void group_end(Group& group) {
  registers_group_end(group);
  tmem_group_end(group);
  if (group.unit_state != nullptr) mbarrier_group_end(group);
}

}  // namespace

const UnitCallbacks unit_callbacks{group_begin, block_begin, thread_exit, group_end};

ThreadUnits& thread_units(Thread& thread) { return unit_state<ThreadUnits>(thread); }
BlockUnits& block_units(Block& block) { return unit_state<BlockUnits>(block); }
GroupUnits& group_units(Group& group) { return unit_state<GroupUnits>(group); }

bool happens_now() {
  switch (async_schedule()) {
    case AsyncSchedule::early: return true;
    case AsyncSchedule::random: return random_u32() % 2 != 0;
    default: return false;
  }
}

void require_own_shared(const void* pointer, const char* what, void* pc) {
  const Block* owner = find_shared_block(pointer);
  if (owner == current_thread->block || (owner == nullptr && is_static_shared(pointer))) return;
  fail_at(pc, "{}: the address is {}in {}shared memory", what, owner != nullptr ? "" : "not ",
          owner != nullptr ? "another block's " : "");
}

void require_registers(const void* pointer, const char* what, void* pc) {
  if (is_own_stack(pointer)) return;
  fail_at(pc, "{}: registers are in memory: copy them to or from local variables", what);
}

void* map_to_rank(const void* pointer, uint32_t rank, const char* what, void* pc) {
  const Group& group = *current_thread->block->group;
  const uint32_t size = group.launch->cluster;
  if (rank >= size) {
    fail_at(pc, "{}: block {} of a cluster of {}", what, rank, size);
  }
  const Block* owner = find_shared_block(pointer);
  if (owner == nullptr) {
    if (size == 1 && is_static_shared(pointer)) return const_cast<void*>(pointer);
    fail_at(pc, "{}: the address is not in dynamic shared memory", what);
  }
  const Block& own = *current_thread->block;
  const Block& target = *group.blocks[own.index - own.rank + rank];
  if (target.alive == 0) {
    fail_at(pc, "{}: block {} of the cluster has exited, and its shared memory with it", what,
            rank);
  }
  return target.shared + (static_cast<const char*>(pointer) - owner->shared);
}

}  // namespace cookbook::simt
