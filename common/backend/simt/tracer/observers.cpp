// SPDX-License-Identifier: MIT
//
// The tracer's ends: the hooks that the runtime calls, and what starts and stops a trace.
#include <bit>
#include <cstdio>

#include "common/backend/simt/tracer/instrumentation.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

namespace cookbook::simt {
namespace {

using tracing::kComparedGroups;
using tracing::loaded_images;
using tracing::Shared;
using tracing::shared;
using tracing::token_of;
using tracing::WorkerTracer;

// ---- workers and launches ---------------------------------------------------------------------

std::vector<std::unique_ptr<WorkerTracer>> all_tracers;
size_t tracers_in_use = 0;
thread_local WorkerTracer* this_tracer = nullptr;
thread_local uint64_t this_tracer_launch = 0;

class TracingHooks final : public Hooks {
 public:
  void launch_begin(const Launch& launch) override {
    Shared& state = shared();
    tracers_in_use = 0;
    ++state.launch_number;
    state.images = loaded_images();
    state.shadows.clear();
    state.places.assign(1, {});
    state.flags.clear();
    if (state.kernels.find(launch.kernel) == state.kernels.end()) {
      state.kernel_order.push_back(launch.kernel);
    }
    const uint64_t number = ++state.kernels[launch.kernel].launches;
    launch_ = &launch;
    const bool late = trace_budget.launches != 0 && number > trace_budget.launches;
    const uint64_t per_group =
        uint64_t{launch.block.x} * launch.block.y * launch.block.z * launch.blocks_per_group;
    traced_groups_ = late ? 0
                     : trace_budget.threads == 0
                         ? launch.group_count
                         : std::max<uint64_t>(trace_budget.threads / per_group, 4);
    if (traced_groups_ < launch.group_count) mark_all_written();  // by whom, nobody sees
    if (launch.group_count > kComparedGroups) {
      std::fprintf(stderr,
                   "note: %s runs %llu blocks; races between them are looked for among the first "
                   "%llu\n",
                   kernel_name(launch.kernel).c_str(),
                   static_cast<unsigned long long>(launch.group_count * launch.blocks_per_group),
                   static_cast<unsigned long long>(kComparedGroups * launch.blocks_per_group));
    }
  }

  void launch_end(const Launch& launch, bool) override {
    Shared& state = shared();
    std::map<uint64_t, std::vector<uint64_t>> touched;
    for (size_t i = 0; i < tracers_in_use; ++i) {
      all_tracers[i]->merge_into(state);
      all_tracers[i]->merge_sectors(touched);
    }
    uint64_t sectors = 0;
    for (const auto& [serial, words] : touched) {
      for (const uint64_t word : words) sectors += static_cast<uint64_t>(std::popcount(word));
    }
    state.kernels[launch.kernel].distinct_bytes += sectors * kSectorBytes;
    state.shadows.clear();
    state.flags.clear();
    tracers_in_use = 0;
  }

  void group_begin(Group& group) override {
    Shared& state = shared();
    if (this_tracer == nullptr || this_tracer_launch != state.launch_number) {
      const std::lock_guard<std::mutex> lock(state.mutex);
      if (tracers_in_use == all_tracers.size()) {
        all_tracers.push_back(std::make_unique<WorkerTracer>());
      }
      this_tracer = all_tracers[tracers_in_use++].get();
      this_tracer_launch = state.launch_number;
      this_tracer->begin_launch(*launch_);
    }
    group.traced = is_traced(group.id);
    this_tracer->begin_group(group);
  }
  void group_end(Group&) override {
    this_tracer->detector().check_exits();
    this_tracer->end_group();
  }
  void block_end(Block& block) override { this_tracer->end_block(block); }

  void full_barrier(Block& block) override {
    if (block.group->block_count == 1) {
      this_tracer->detector().full_barrier();
      return;
    }
    std::vector<Actor> actors(block.thread_count);
    for (uint32_t i = 0; i < block.thread_count; ++i) actors[i] = block.threads[i].actor;
    this_tracer->detector().join(actors.data(), actors.size());
  }
  void join(Block& block, const uint16_t* thread_ids, int count) override {
    Actor actors[kMaxBlockThreads];
    for (int i = 0; i < count; ++i) actors[i] = block.threads[thread_ids[i]].actor;
    this_tracer->detector().join(actors, static_cast<size_t>(count));
  }
  void release(const void* object, Actor who, Knowledge what) override {
    this_tracer->detector().release(object, who, what);
  }
  void acquire(const void* object, Actor who) override {
    this_tracer->detector().acquire(object, who);
  }
  void flag_acquire(const void* address) override {
    this_tracer->detector().acquire(address, current_thread->actor);
    this_tracer->flag_acquire(*current_thread, reinterpret_cast<uintptr_t>(address));
  }
  void flag_was_read(Thread& thread) override { this_tracer->flag_was_read(thread); }
  void memory_fence() override { this_tracer->memory_fence(*current_thread); }
  void async_begin(Actor operation, Thread& issuer) override {
    this_tracer->detector().begin_async(operation, issuer.actor);
  }
  void async_access(const void* address, size_t bytes, bool is_write, Thread& issuer, void* pc,
                    Actor actor, AsyncKind kind) override {
    const Op op = is_write ? Op::async_store : Op::async_load;
    if (kind == AsyncKind::cp_async || kind == AsyncKind::st_async) {
      if (!is_write) this_tracer->note_copy_source(actor, address);
      this_tracer->note_kind(kind);
      trace_lane_access(issuer, address, static_cast<unsigned>(bytes), op, pc, actor);
    } else {
      trace_bulk_access(issuer, address, bytes, op, pc, actor);
    }
  }
  void atomic_access(const void* address, int bytes, void* pc) override {
    if (current_thread == nullptr || !current_thread->block->group->traced) return;
    trace_flag_access(*current_thread, reinterpret_cast<uintptr_t>(address),
                      static_cast<unsigned>(bytes), Op::atomic, FlagUse::atomic, false, pc);
  }
  void atomic_done(const void* address) override {
    if (current_thread == nullptr || !current_thread->block->group->traced) return;
    trace_flag_read(*current_thread, reinterpret_cast<uintptr_t>(address));
  }
  void unit_access(const void* address, int bytes, bool is_write, void* pc) override {
    if (current_thread == nullptr || bytes <= 0 || !current_thread->block->group->traced) return;
    this_tracer->lane_access(
        *current_thread, reinterpret_cast<uintptr_t>(address), static_cast<unsigned>(bytes),
        is_write ? Op::store : Op::load, SharedRule::load_store,
        std::has_single_bit(static_cast<unsigned>(bytes)), pc, 0, current_thread->actor);
  }
  void flag_access(const void* address, int bytes, bool is_write, void* pc) override {
    this_tracer->lane_access(*current_thread, reinterpret_cast<uintptr_t>(address),
                             static_cast<unsigned>(bytes), is_write ? Op::store : Op::load,
                             SharedRule::load_store, true, pc, 0, current_thread->actor,
                             is_write ? FlagUse::atomic : FlagUse::atomic_load, is_write);
    if (is_write) {
      // Blocks of one group agree through the detector, others through the flags of the launch.
      this_tracer->detector().release(address, current_thread->actor, Knowledge::all);
    }
  }
  void proxy_fence(Thread& thread) override { this_tracer->detector().proxy_fence(thread.actor); }
  void mbarrier_init(const uint64_t* bar, void* pc) override {
    this_tracer->barrier_init(*current_thread, bar, pc);
  }
  void mbarrier_invalidate(const uint64_t* bar) override {
    this_tracer->detector().barrier_invalidate(bar);
  }
  void mbarrier_use(const uint64_t* bar, Actor who, bool async_proxy, void* pc) override {
    this_tracer->barrier_use(bar, who, async_proxy, pc);
  }
  void mbarrier_init_fence() override {
    this_tracer->detector().barrier_init_fence(current_thread->actor);
  }
  void different_places(const char* operation, const Thread& first, void* first_pc,
                        void* pc) override {
    this_tracer->note_different_places(operation, first, first_pc, *current_thread, pc);
  }
  void diverged(const char* operation, const Thread& alone, bool waited, void* alone_pc,
                void* pc) override {
    this_tracer->note_diverged(operation, alone, waited, alone_pc, *current_thread, pc);
  }
  uint32_t clock(const Thread& thread) override {
    return this_tracer->detector().clock_of(thread.actor);
  }
  bool knows(const Thread& by, const Thread& other, uint32_t clock) override {
    return this_tracer->detector().known(by.actor, static_cast<uint32_t>(other.actor)) >= clock;
  }
  void registers_unordered(const Thread& other, void* earlier_pc, void* pc) override {
    this_tracer->note_registers_unordered(other, earlier_pc, *current_thread, pc);
  }
  void mbarrier_waited(Thread& thread, bool idle, void* pc) override {
    this_tracer->detector().idle_wait(thread.actor, idle ? token_of(pc) : 0);
  }

 private:
  /// Half of the traced groups come first, since neighbours are the likeliest to meet.
  bool is_traced(uint64_t group) const {
    const uint64_t all = launch_->group_count;
    if (traced_groups_ >= all) return true;
    if (traced_groups_ == 0) return false;
    return group < traced_groups_ / 2 || group + 1 == all ||
           group % (all / (traced_groups_ / 2) + 1) == 0;
  }

  const Launch* launch_ = nullptr;
  uint64_t traced_groups_ = 0;
};

TracingHooks tracing_hooks;

void start() {
  Shared& state = shared();
  state.sites.clear();
  state.buffer_names.clear();
  state.kernels.clear();
  state.kernel_order.clear();
  state.findings.clear();
  find_library_code();
  hooks = &tracing_hooks;
}

Trace stop() {
  hooks = nullptr;
  return tracing::make_trace(shared());
}

TracerBackend backend{start, stop};
[[maybe_unused]] const bool registered = [] {
  tracer_backend = &backend;
  return true;
}();

}  // namespace

void trace_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, bool natural_alignment,
                  void* pc, unsigned part) {
  this_tracer->lane_access(thread, address, bytes, op,
                           op == Op::atomic ? SharedRule::atomic : SharedRule::load_store,
                           natural_alignment, pc, part, thread.actor);
}

void trace_flag_access(Thread& thread, uintptr_t address, unsigned bytes, Op op, FlagUse use,
                       bool fenced, void* pc) {
  this_tracer->lane_access(thread, address, bytes, op,
                           op == Op::atomic ? SharedRule::atomic : SharedRule::load_store, true, pc,
                           0, thread.actor, use, fenced);
}

void trace_flag_read(Thread& thread, uintptr_t address) {
  this_tracer->flag_acquire(thread, address);
}

void trace_overflow(Thread& thread, const std::string& operation, const char* type, void* pc) {
  this_tracer->overflow(thread, operation, type, pc);
}

void trace_lane_access(Thread& thread, const void* address, unsigned bytes, Op op, void* pc,
                       Actor actor) {
  if (bytes == 0) return;
  this_tracer->lane_access(thread, reinterpret_cast<uintptr_t>(address), bytes, op,
                           SharedRule::matrix_rows, std::has_single_bit(bytes), pc, 0, actor);
}

void trace_bulk_access(Thread& issuer, const void* address, size_t bytes, Op op, void* pc,
                       Actor actor) {
  if (bytes == 0) return;
  this_tracer->bulk_access(issuer, reinterpret_cast<uintptr_t>(address), bytes, op, pc, actor);
}

}  // namespace cookbook::simt
