// SPDX-License-Identifier: MIT
// What the runtime and the units report to the tracer of their worker.
#include <algorithm>
#include <bit>

#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt::tracing {

// ---- synchronisation --------------------------------------------------------------------------

void WorkerTracer::full_barrier(Block& block) {
  if (block.group->block_count == 1) {
    detector_.full_barrier();
    return;
  }
  std::vector<Actor> actors(block.thread_count);
  for (uint32_t i = 0; i < block.thread_count; ++i) actors[i] = block.threads[i].actor;
  detector_.join(actors.data(), actors.size());
}

void WorkerTracer::join(Block& block, const uint16_t* thread_ids, int count) {
  Actor actors[kMaxBlockThreads];
  for (int i = 0; i < count; ++i) actors[i] = block.threads[thread_ids[i]].actor;
  detector_.join(actors, static_cast<size_t>(count));
}

// ---- accesses ---------------------------------------------------------------------------------

void WorkerTracer::atomic_access(const void* address, int bytes, void* pc) {
  if (!group_->traced) return;
  Access access = natural_access(address, static_cast<size_t>(bytes), Op::atomic, pc);
  access.use = FlagUse::atomic;
  access.rule = SharedRule::atomic;
  lane_access(current_thread->actor, access);
}

void WorkerTracer::atomic_done(const void* address) {
  if (!group_->traced) return;
  flag_acquire(address_of(address), false);
}

void WorkerTracer::memory_freed(const void* begin) {
  finish_store();
  for (Buffer*& buffer : recent_) {
    if (buffer != nullptr && buffer->begin == address_of(begin)) buffer = nullptr;
  }
  std::stable_partition(recent_.begin(), recent_.end(),
                        [](const Buffer* b) { return b != nullptr; });
}

// Blocks of one group agree through the detector, others through the flags of the launch.
void WorkerTracer::load_acquire(const void* address, int bytes, void* pc) {
  const Actor self = current_thread->actor;
  Access access = natural_access(address, static_cast<size_t>(bytes), Op::load, pc);
  access.use = FlagUse::atomic_load;
  lane_access(self, access);
  detector_.acquire(address, self);
  if (launch_->group_count > 1) flag_acquire(address_of(address), false);
}

void WorkerTracer::store_release(const void* address, int bytes, void* pc) {
  const Actor self = current_thread->actor;
  Access access = natural_access(address, static_cast<size_t>(bytes), Op::store, pc);
  access.use = FlagUse::atomic;
  access.fenced = true;
  lane_access(self, access);
  detector_.release(address, self, Knowledge::all);
}

void WorkerTracer::unit_access(const void* address, int bytes, bool is_write, void* pc) {
  if (!group_->traced) return;
  lane_access(current_thread->actor, natural_access(address, static_cast<size_t>(bytes),
                                                    is_write ? Op::store : Op::load, pc));
}

// ---- asynchronous operations ------------------------------------------------------------------

// Of groups that are not traced nobody sees the plain accesses before and behind them.
void WorkerTracer::async_copy(void* smem, const void* gmem, unsigned bytes, unsigned valid_bytes,
                              void* pc, Actor operation) {
  if (!group_->traced) return;
  if (valid_bytes > 0) {
    Access read = natural_access(gmem, valid_bytes, Op::async_load, pc);
    read.natural = std::has_single_bit(valid_bytes);
    read.rule = SharedRule::matrix_rows;
    lane_access(operation, read);
  }
  Access write = natural_access(smem, bytes, Op::async_store, pc);
  write.may_outlive = valid_bytes == 0;
  write.rule = SharedRule::matrix_rows;
  write.source = valid_bytes > 0 ? address_of(gmem) : 0;
  lane_access(operation, write);
}

void WorkerTracer::async_store(void* address, unsigned bytes, void* pc, Actor operation) {
  if (!group_->traced) return;
  Access access = natural_access(address, bytes, Op::async_store, pc);
  access.rule = SharedRule::matrix_rows;
  lane_access(operation, access);
}

void WorkerTracer::async_bulk(const void* address, size_t bytes, BulkUse use, void* pc,
                              Actor operation) {
  if (bytes == 0 || !group_->traced) return;
  const FlagUse between_blocks = use == BulkUse::add           ? FlagUse::addition
                                 : use == BulkUse::add_rounded ? FlagUse::rounded_addition
                                                               : FlagUse::none;
  bulk_access(operation, {.address = address_of(address),
                          .pc = pc,
                          .bytes = static_cast<uint32_t>(bytes),
                          .op = use == BulkUse::read ? Op::async_load : Op::async_store,
                          .use = between_blocks,
                          .is_answer = use == BulkUse::answer});
}

// ---- mbarriers --------------------------------------------------------------------------------

void WorkerTracer::mbarrier_init(const uint64_t* bar, void* pc) {
  detector_.barrier_init(bar, barrier_offset(bar), current_thread->actor, token_of(pc));
}

void WorkerTracer::mbarrier_use(const uint64_t* bar, Actor who, bool async_proxy, void* pc) {
  detector_.barrier_use(bar, {who, token_of(pc), false, false, async_proxy},
                        owner_of(barrier_offset(bar)));
}

// ---- setmaxnreg -------------------------------------------------------------------------------

// A warp executes it together, but its lanes come one by one and do not wait: one may be several
// times ahead. All warps of a warpgroup must synchronise between two: it is enough to know that one
// lane of each other warp has passed the first.
void WorkerTracer::setmaxnreg(uint32_t n, void* pc) {
  constexpr uint32_t kWarps = 4;  // of a warpgroup
  const Thread& self = *current_thread;
  const uint32_t own_warp = self.block->index * warps_per_block_ + self.id / kWarpSize;
  register_calls_.resize(size_t{warps_per_block_} * group_->block_count);
  std::vector<RegisterCall>& calls = register_calls_[own_warp];
  if (n == calls.size()) {
    calls.push_back({&self, self.path, pc});
  } else {
    require_converged(calls[n].path, *calls[n].first, "setmaxnreg", pc);
  }
  if (!group_->traced) return;
  calls[n].clocks[self.lane] = detector_.clock_of(self.actor);
  if (n == 0) return;
  const uint32_t first_warp = own_warp / kWarps * kWarps;
  for (uint32_t w = first_warp; w < first_warp + kWarps; ++w) {
    const Thread* lanes = self.block->threads + (w % warps_per_block_) * kWarpSize;
    bool passed = w == own_warp;
    for (uint32_t lane = 0; lane < kWarpSize && n <= register_calls_[w].size() && !passed; ++lane) {
      const uint32_t clock = register_calls_[w][n - 1].clocks[lane];
      passed = clock != 0 &&
               detector_.known(self.actor, static_cast<uint32_t>(lanes[lane].actor)) >= clock;
    }
    if (passed) continue;
    Occurrence& found =
        note(Kind::registers_unordered, token_of(calls[n - 1].pc), pc, self, Op::load);
    if (found.count == 1) found.earlier_thread = lanes[0].thread_idx;
    return;
  }
}

}  // namespace cookbook::simt::tracing
