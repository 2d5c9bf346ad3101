// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/sync.hpp"

#include <string>

#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/register_tracer.hpp"
#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/wgmma_state.hpp"

namespace cookbook {
namespace simt {
namespace {

constexpr uint32_t kBlockRegisters = 65536;

void require_barrier(int id, int threads, const char* what, void* pc) {
  if (id < 0 || id > 15) {
    fail_at(pc, "{}: barriers are numbered 0 to 15, got {}", what, id);
  }
  if (threads <= 0 || threads % 32 != 0 || threads > static_cast<int>(kMaxBlockThreads)) {
    fail_at(pc, "{}: the number of threads is a multiple of 32, got {}", what, threads);
  }
}

}  // namespace

// Only the compiler knows the registers per thread. What can be checked here: all threads of a
// warpgroup want the same, and once every warpgroup has stated its number, they want no more than
// the block was launched with. That is at most the register file divided by the threads, in units
// of 8 per thread. On an H200 a block that wants more waits forever.
void set_registers(int count) {
  void* const pc = COOKBOOK_SIMT_PC;
  const Thread& self = *current_thread;
  Block& block = *self.block;
  if (block.thread_count % kWarpgroupThreads != 0) {
    fail("setmaxnreg: the block is not made of whole warpgroups", pc);
  }
  BlockUnits& units = block_units(block);
  units.register_calls.resize(block.thread_count);
  units.register_requests.resize(block.thread_count / kWarpgroupThreads);
  const uint32_t time = units.register_calls[self.id]++;
  const auto registers = static_cast<uint32_t>(count);
  if (register_tracer != nullptr) register_tracer->setmaxnreg(time, pc);
  std::vector<BlockUnits::RegisterRequest>& own =
      units.register_requests[self.id / kWarpgroupThreads];
  if (time < own.size()) {
    if (own[time].registers == registers) return;
    fail_at(pc, "setmaxnreg: {} registers, and {} for thread {} of the same warpgroup", registers,
            own[time].registers, triple(own[time].first->thread_idx));
  }
  own.push_back({&self, registers, pc});
  uint32_t sum = 0;
  for (const auto& requests : units.register_requests) {
    if (requests.empty()) return;
    sum += requests.back().registers * kWarpgroupThreads;
  }
  const uint32_t per_thread = kBlockRegisters / block.thread_count / 8 * 8;
  if (sum > per_thread * block.thread_count) {
    fail_at(pc,
            "setmaxnreg: the block's warpgroups want {} registers, and it is launched with at most "
            "{} ({} for each of {} threads)",
            sum, per_thread * block.thread_count, per_thread, block.thread_count);
  }
}

void registers_group_end(Group& group) {
  for (uint32_t b = 0; b < group.block_count; ++b) {
    Block& block = *group.blocks[b];
    if (block.unit_state == nullptr) continue;
    const BlockUnits& units = block_units(block);
    for (uint32_t id = 0; id < units.register_calls.size(); ++id) {
      const auto& requests = units.register_requests[id / kWarpgroupThreads];
      const uint32_t calls = units.register_calls[id];
      if (calls == requests.size()) continue;
      const BlockUnits::RegisterRequest& missed = requests[calls];
      fail_at(missed.pc,
              "setmaxnreg: thread {} of block {} ended without the one that thread {} of its "
              "warpgroup came to",
              triple(block.threads[id].thread_idx), triple(block.block_idx),
              triple(missed.first->thread_idx));
    }
  }
}

uint64_t load_acquire(const void* address, int bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  const uint64_t value =
      bytes == 4 ? __atomic_load_n(static_cast<const uint32_t*>(address), __ATOMIC_ACQUIRE)
                 : __atomic_load_n(static_cast<const uint64_t*>(address), __ATOMIC_ACQUIRE);
  if (access_tracer != nullptr) access_tracer->load_acquire(address, bytes, pc);
  return value;
}

void store_release(void* address, uint64_t value, int bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  if (access_tracer != nullptr) access_tracer->store_release(address, bytes, pc);
  if (bytes == 4) {
    __atomic_store_n(static_cast<uint32_t*>(address), static_cast<uint32_t>(value),
                     __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(static_cast<uint64_t*>(address), value, __ATOMIC_RELEASE);
  }
}

}  // namespace simt

using namespace simt;

void named_barrier_sync(int id, int threads) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_barrier(id, threads, "named_barrier_sync", pc);
  const MarkedWait marked(timeline::Kind::wait_turn, static_cast<uint32_t>(id));
  barrier_sync(static_cast<unsigned>(id), static_cast<unsigned>(threads), "named_barrier_sync", pc);
}

void named_barrier_arrive(int id, int threads) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_barrier(id, threads, "named_barrier_arrive", pc);
  barrier_arrive(static_cast<unsigned>(id), static_cast<unsigned>(threads), pc);
}

bool elect_one() {
  Rendezvous& meeting =
      meet(current_thread->warp->lanes, 0, "elect_one", Meet::plain, COOKBOOK_SIMT_PC);
  const auto lowest = static_cast<uint32_t>(__builtin_ctz(meeting.participants));
  finish_meeting(meeting);
  return current_thread->lane == lowest;
}

void wait_for_previous_launch() { current_thread->block->previous_ended = true; }

void spin_pause() { yield_current(COOKBOOK_SIMT_PC); }

}  // namespace cookbook
