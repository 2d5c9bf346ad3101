// SPDX-License-Identifier: MIT
// Runs the fibers of a group.
#include "common/backend/simt/runtime/scheduler.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "common/backend/device_bytes.hpp"
#include "common/backend/simt/runtime/control_flow.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/launch_tracer.hpp"
#include "common/backend/simt/runtime/memory.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/sync.hpp"
#include "common/backend/simt/runtime/worker.hpp"

// What kernels see as constants (language.hpp): one fiber never sees them change.
__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cookbook::simt {

__thread Worker* current_worker = nullptr;
__thread Thread* current_thread = nullptr;

void* place_of_exit(const Thread& thread) {
  const std::pair blocks(thread.block_before, thread.basic_block);
  auto* const last = reinterpret_cast<void*>(blocks.second);
  if (blocks.first == 0) return last;
  // To read the machine code takes a while, and most threads of a block exit at the same place.
  static std::mutex mutex;
  static std::map<std::pair<uintptr_t, uintptr_t>, void*> known;
  const NoThread none;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [at, is_new] = known.try_emplace(blocks);
  if (is_new) at->second = branch_between(reinterpret_cast<void*>(blocks.first), last);
  return at->second;
}

namespace {

// Thrown instead of a context switch when the error is found on the worker's own stack.
struct Abandoned {};

[[noreturn]] void abandon(Fault fault, std::string message) {
  Worker& worker = *current_worker;
  worker.fault = fault;
  worker.error = std::move(message);
  if (!current_thread) throw Abandoned{};
  void* discarded;
  current_thread = nullptr;
  cookbook_simt_switch(&discarded, worker.main_stack_pointer);
  std::abort();  // nobody resumes an abandoned fiber
}

// ---- error reports ----

std::string thread_range(uint32_t first, uint32_t last) {
  if (first == last) return fmt::format("thread {}", first);
  return fmt::format("threads {}..{}", first, last);
}

// What a thread does, as far as a report tells it.
struct Activity {
  bool exited = false, runs = false, spins = false, preempted = false;
  const char* waits_in = nullptr;
  const Waitable* waits_for = nullptr;
  void* pc = nullptr;
  bool operator==(const Activity&) const = default;
};

// The line of a thread that runs, or whose turn to run is over.
std::string line_of(const Activity& one, const RunningThread* running) {
  return one.runs ? running->line.substr(0, running->line.find(' ')) : describe_pc(one.pc);
}

// Whether a report lists the two as one. Threads that take turns are anywhere in their loop.
bool is_same(const Activity& one, const Activity& other, const RunningThread* running) {
  if (one == other) return true;
  return (one.preempted || one.runs) && (other.preempted || other.runs) &&
         line_of(one, running) == line_of(other, running);
}

Activity activity_of(const Thread& thread, const RunningThread* running) {
  // Read once each: the thread may run on.
  const auto state = static_cast<const volatile ThreadState&>(thread.state);
  const auto waits_in = static_cast<const char* const volatile&>(thread.waits_in);
  const auto waits_for = static_cast<const Waitable* const volatile&>(thread.waits_for);
  const auto pc = static_cast<void* const volatile&>(thread.wait_pc);
  if (state == ThreadState::exited) {
    const auto block = static_cast<const volatile uintptr_t&>(thread.basic_block);
    return {.exited = true, .pc = block != 0 ? place_of_exit(thread) : nullptr};
  }
  if (running && running->thread == &thread) return {.runs = true};
  const bool spins = thread.spinning && state != ThreadState::blocked;
  if (spins) return {.spins = true, .pc = pc};
  if (static_cast<const volatile bool&>(thread.preempted)) return {.preempted = true, .pc = pc};
  if (waits_in) return {.waits_in = waits_in, .waits_for = waits_for, .pc = pc};
  // A lane that waits for others of its warp is on its way to this basic block.
  const auto block = static_cast<const volatile uintptr_t&>(thread.basic_block);
  return {.pc = reinterpret_cast<void*>(block)};
}

// "threads 0..31 wait in __syncthreads at sgemm.cuh:40; threads 32..63 exited"
std::string describe_threads(const Block& block, const RunningThread* running) {
  constexpr int kMaxRanges = 12;
  std::string text;
  int ranges = 0;
  for (uint32_t first = 0; first < block.thread_count;) {
    const Activity head = activity_of(block.threads[first], running);
    uint32_t last = first;
    while (last + 1 < block.thread_count) {
      const Activity next = activity_of(block.threads[last + 1], running);
      if (!is_same(next, head, running)) break;
      ++last;
    }
    if (ranges++ == kMaxRanges) return text + "; ...";
    if (!text.empty()) text += "; ";
    text += thread_range(first, last);
    const std::string s = first == last ? "s" : "";
    std::string line = head.pc ? " at " + describe_pc(head.pc) : "";
    if (head.exited) {
      text += " exited";
    } else if (head.runs) {
      text += first == last ? " runs" : " take turns to run";
      if (!running->line.empty()) line = " at " + running->line;
    } else if (head.spins) {
      text += " spin" + s;
    } else if (head.preempted) {
      text += first == last ? " waits for its turn to run" : " take turns to run";
    } else if (head.waits_in) {
      text += fmt::format(" wait{} in {}", s, head.waits_in);
      if (head.waits_for) text += " " + head.waits_for->describe();
    } else {
      text += first == last ? " is ready" : " are ready";
    }
    text += line;
    first = last + 1;
  }
  return text;
}

}  // namespace

std::string describe_group(const Group& group, const RunningThread* running) {
  const NoThread none;
  constexpr int kMaxBlocks = 4;
  std::vector<void*> pcs;
  for (uint32_t b = 0; b < group.block_count; ++b) {
    const Block& block = *group.blocks[b];
    for (uint32_t t = 0; t < block.thread_count; ++t) {
      pcs.push_back(block.threads[t].wait_pc);
      pcs.push_back(reinterpret_cast<void*>(block.threads[t].basic_block));
    }
  }
  std::sort(pcs.begin(), pcs.end());
  pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
  symbolize(pcs);  // all at once; describe_pc() then finds them in the cache

  std::string text;
  int listed = 0;
  for (uint32_t b = 0; b < group.block_count; ++b) {
    const Block& block = *group.blocks[b];
    if (block.alive == 0) continue;
    if (listed++ == kMaxBlocks) return text + "; more blocks likewise";
    if (!text.empty()) text += "; ";
    text += "block " + triple(block.block_idx) + ": " + describe_threads(block, running);
  }
  return text;
}

std::string describe_waiting_blocks(const LaunchState& state) {
  const uint64_t started = state.next_group.load();
  if (started >= state.group_total) return "";
  const uint64_t blocks = (state.group_total - started) * state.launch->blocks_per_group;
  return fmt::format(
      "; {} {} not started, and none will before another ends: a block may wait only for blocks "
      "that started before it",
      blocks, blocks == 1 ? "block has" : "blocks have");
}

namespace {

[[noreturn]] void report_deadlock(Worker& worker) {
  abandon(Fault::deadlock,
          fmt::format("{}: deadlock in {}", kernel_name(worker.group.launch->kernel),
                      describe_group(worker.group)));
}

[[noreturn]] void report_livelock(Worker& worker) {
  abandon(Fault::no_progress,
          fmt::format("{}: no progress, every thread only spins: {}{}",
                      kernel_name(worker.group.launch->kernel), describe_group(worker.group),
                      describe_waiting_blocks(*worker.state)));
}

// ---- switching ----

void enqueue(Worker& worker, Thread* thread) {
  thread->state = ThreadState::ready;
  ++thread->warp->running;
  worker.ready.push(thread);
}

void enter(Thread* thread) {
  current_thread = thread;
  threadIdx = thread->thread_idx;
  blockIdx = thread->block->block_idx;
}

// Continues with the next thread that can run. The current one is queued, blocked, parked or has
// exited.
template <auto switch_to = cookbook_simt_switch>
void schedule() {
  Worker& worker = *current_worker;
  Thread* self = current_thread;
  if (worker.state->schedule == AsyncSchedule::random && !worker.pending.empty() &&
      random_u32() % 8 == 0) {
    run_pending(worker);
  }
  while (worker.ready.empty()) {
    if (!run_pending(worker)) report_deadlock(worker);
  }
  Thread* next = worker.ready.pop();
  if (next == self) return;
  enter(next);
  switch_to(&self->stack_pointer, next->stack_pointer);
}

// ---- reconvergence (traced mode) ----

// Basic blocks that a parked lane may be passed over: long enough for divergent loops to end, and
// halved each time it is reached in a block, because then the loop is a spin on a lock.
constexpr uint64_t kStarvationLimit = 8192, kMinStarvationLimit = 64;

constexpr uint64_t kBlocksBetweenTurns = 256;  // basic blocks that a lone lane runs at a stretch

uintptr_t rank_of(const Thread& lane) {
  struct Known {
    uintptr_t pc = 0, rank = 0;
  };
  thread_local std::array<Known, 256> known;  // diverged warps ask for a few places again and again
  Known& entry = known[mix_bits(lane.basic_block) % known.size()];
  if (entry.pc != lane.basic_block) {
    entry = {lane.basic_block, reconvergence_rank(lane.basic_block)};
  }
  return entry.rank;
}

bool goes_before(const Thread& lane, const Thread& other) {
  if (lane.spinning != other.spinning) return other.spinning;
  if (lane.call_depth != other.call_depth) return lane.call_depth > other.call_depth;
  return rank_of(lane) < rank_of(other);
}

// Lets these parked lanes of `warp` go on together.
void release(Worker& worker, Warp& warp, uint32_t released) {
  warp.parked &= ~released;
  ++warp.instruction;
  ++warp.basic_blocks;
  warp.active_lanes += static_cast<uint64_t>(__builtin_popcount(released));
  for (uint32_t rest = released; rest != 0; rest &= rest - 1) {
    Thread& thread = warp.threads[__builtin_ctz(rest)];
    thread.converged = released;
    thread.spinning = false;
    enqueue(worker, &thread);
  }
}

// Called when a lane of `warp` stops running. Once none runs, one group of parked lanes goes on:
// the deepest call first, then the lowest rank. Lanes that spin come last, and a lane passed over
// for very long first: otherwise a lock held by a lane behind a loop would never be released.
void lane_stopped(Worker& worker, Warp& warp) {
  if (--warp.running != 0 || warp.parked == 0) return;

  const auto now = static_cast<uint32_t>(warp.instruction);
  if (warp.parked_together && now - warp.parked_at <= warp.starvation_limit) {
    release(worker, warp, warp.parked);
    return;
  }
  const auto at_same_place = [](const Thread& one, const Thread& other) {
    return one.basic_block == other.basic_block && one.call_depth == other.call_depth;
  };
  const Thread* best = nullptr;
  const Thread* later = nullptr;  // a lane that goes after the best one
  const Thread* oldest = nullptr;
  uint32_t released = 0;  // the lanes so far that are where the best one is
  bool some_spin = false;
  for (uint32_t rest = warp.parked; rest != 0; rest &= rest - 1) {
    const int index = __builtin_ctz(rest);
    const Thread& lane = warp.threads[index];
    if (!oldest || now - lane.parked_at > now - oldest->parked_at) oldest = &lane;
    some_spin |= lane.spinning;
    const auto is_in_group_of = [&](const Thread* other) {
      return other && lane.spinning == other->spinning && at_same_place(lane, *other);
    };
    if (is_in_group_of(best)) {
      released |= 1u << index;
    } else if (is_in_group_of(later)) {
      continue;  // saves comparing: groups are few
    } else if (!best || goes_before(lane, *best)) {
      later = std::exchange(best, &lane);
      released = 1u << index;
    } else {
      later = &lane;
    }
  }
  const bool starves = now - oldest->parked_at > warp.starvation_limit;
  if (starves) {
    best = oldest;
    warp.starvation_limit = std::max(warp.starvation_limit / 2, kMinStarvationLimit);
  }
  if (starves || some_spin) {
    released = 0;
    for (uint32_t rest = warp.parked; rest != 0; rest &= rest - 1) {
      const int index = __builtin_ctz(rest);
      if (at_same_place(warp.threads[index], *best)) released |= 1u << index;
    }
  }
  release(worker, warp, released);
}

// ---- life of a thread ----

void thread_main() {
  {
    const Launch& launch = *current_worker->group.launch;
    try {
      launch.invoke(launch.kernel, launch.arguments);
    } catch (const std::exception& error) {
      fail(std::string("exception in a kernel: ") + error.what());
    }
    Thread& self = *current_thread;
    if (self.block->alive == 1 && !self.block->previous_ended) {
      fail("a block of a dependent launch ends without wait_for_previous_launch()");
    }
    unit_callbacks.thread_exit(self);
  }
  Worker& worker = *current_worker;
  Thread& self = *current_thread;
  worker.note_progress();
  worker.finished_threads.store(worker.finished_threads.load(std::memory_order_relaxed) + 1,
                                std::memory_order_relaxed);
  self.state = ThreadState::exited;
  self.warp->alive &= ~(1u << self.lane);
  --self.block->alive;
  --worker.group.alive;
  release_after_exit(self);
  lane_stopped(worker, *self.warp);
  if (worker.group.alive == 0) {
    current_thread = nullptr;
    void* discarded;
    cookbook_simt_switch(&discarded, worker.main_stack_pointer);
  }
  schedule();
  std::abort();  // an exited thread is never resumed
}

// ---- life of a group ----

size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void prepare_block(Worker& worker, uint32_t index, uint64_t block_id, uint32_t first_actor) {
  Group& group = worker.group;
  const Launch& launch = *group.launch;
  Block& block = *group.blocks[index];
  Worker::BlockStorage& storage = worker.storage[index];

  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z;
  const uint32_t warps = (threads + kWarpSize - 1) / kWarpSize;
  if (storage.thread_capacity < threads) {
    storage.threads.reset(new Thread[threads]);
    storage.thread_capacity = threads;
  }
  if (storage.warp_capacity < warps) {
    storage.warps.reset(new Warp[warps]);
    storage.warp_capacity = warps;
  }
  const size_t shared_bytes = round_up(launch.shared_bytes, kSharedAlignment) + kSharedPadBytes;
  if (storage.shared_capacity < shared_bytes) {
    storage.shared = {worker.shared_window.block(index, shared_bytes), [](void*) {}};
    if (storage.shared == nullptr) {
      void* memory = std::aligned_alloc(kSharedAlignment, shared_bytes);
      if (!memory) throw std::bad_alloc();
      storage.shared = {static_cast<char*>(memory), &std::free};
    }
    storage.shared_capacity = shared_bytes;
  }
  std::memset(storage.shared.get(), 0xff, shared_bytes);  // NaN, so that uninitialised reads show

  block.block_idx = block_index_in(launch, block_id);
  block.index = index;
  block.rank = static_cast<uint32_t>(block_id % launch.cluster);
  block.group = &group;
  block.thread_count = block.alive = threads;
  block.previous_ended = !launch.dependent;
  block.threads = storage.threads.get();
  block.warps = storage.warps.get();
  block.warp_count = warps;
  block.shared = storage.shared.get();
  block.shared_bytes = launch.shared_bytes;
  for (NamedBarrier& barrier : block.barriers) barrier.begin_phase();
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = block.warps[w];
    const uint32_t lanes = std::min(threads - w * kWarpSize, kWarpSize);
    warp.block = &block;
    warp.threads = block.threads + w * kWarpSize;
    warp.lanes = warp.alive = lanes == kWarpSize ? ~0u : (1u << lanes) - 1;
    warp.running = warp.parked = 0;
    warp.instruction = warp.basic_blocks = warp.active_lanes = 0;
    warp.starvation_limit = kStarvationLimit;
  }
  uint3 thread_idx{0, 0, 0};
  for (uint32_t t = 0; t < threads; ++t) {
    Thread& thread = block.threads[t];
    worker.stacks.forget_frames(first_actor + t);
    char* const top = worker.stacks.top(first_actor + t);
    thread.stack_pointer = make_context(top, thread_main);
    thread.stack_top = top;
    thread.thread_idx = thread_idx;
    if (++thread_idx.x == launch.block.x) {
      thread_idx.x = 0;
      if (++thread_idx.y == launch.block.y) thread_idx.y = 0, ++thread_idx.z;
    }
    thread.id = t;
    thread.lane = t % kWarpSize;
    thread.actor = static_cast<Actor>(first_actor + t);
    thread.block = &block;
    thread.warp = &block.warps[t / kWarpSize];
    thread.spinning = false;
    thread.waits_in = nullptr;
    thread.waits_for = nullptr;
    thread.wait_pc = nullptr;
    thread.preempted = false;
    thread.cluster_arrival = 0;
    thread.basic_block = thread.block_before = 0;
    thread.call_depth = 0;
    thread.converged = thread.warp->lanes;
    thread.parked_at = 0;
    thread.path = {};
  }
}

void prepare_group(Worker& worker, uint64_t id) {
  Group& group = worker.group;
  const Launch& launch = *worker.state->launch;
  const uint32_t block_threads = launch.block.x * launch.block.y * launch.block.z;
  group.id = id;
  group.launch = &launch;
  group.block_count = launch.blocks_per_group;
  group.thread_count = group.alive = block_threads * group.block_count;
  group.cluster_barrier.arrived = group.cluster_barrier.phase = 0;
  group.cluster_barrier.waiting.clear();
  while (group.blocks.size() < group.block_count) group.blocks.push_back(std::make_unique<Block>());
  if (worker.storage.size() < group.block_count) worker.storage.resize(group.block_count);

  worker.error.clear();
  worker.pending.clear();
  worker.running_pending = false;
  worker.idle_yields = 0;
  worker.longest = nullptr;
  worker.random_state = (worker.state->seed + 1) * 0x9e3779b97f4a7c15ull + id;
  worker.ready.reset(group.thread_count);
  worker.stacks.reserve(group.thread_count);
  for (uint32_t b = 0; b < group.block_count; ++b) {
    prepare_block(worker, b, id * group.block_count + b, b * block_threads);
  }
}

void enqueue_all(Worker& worker) {
  Group& group = worker.group;
  std::vector<Thread*> order;
  order.reserve(group.thread_count);
  for (uint32_t b = 0; b < group.block_count; ++b) {
    Block& block = *group.blocks[b];
    for (uint32_t t = 0; t < block.thread_count; ++t) order.push_back(&block.threads[t]);
  }
  if (worker.state->schedule == AsyncSchedule::random) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_u32() % i]);
  }
  for (Thread* thread : order) enqueue(worker, thread);
}

// Bytes behind the dynamic shared memory are 0xFF unless the block wrote there.
void check_shared_pad(const Block& block) {
  const size_t end = round_up(block.shared_bytes, kSharedAlignment) + kSharedPadBytes;
  for (size_t i = block.shared_bytes; i < end; ++i) {
    if (static_cast<unsigned char>(block.shared[i]) != 0xff) {
      abandon(Fault::out_of_bounds,
              fmt::format("{}: block {} wrote behind its {} bytes of dynamic shared memory, at "
                          "offset {}",
                          kernel_name(block.group->launch->kernel), triple(block.block_idx),
                          block.shared_bytes, i));
    }
  }
}

void begin_group(Group& group) {
  unit_callbacks.group_begin(group);
  if (launch_tracer) launch_tracer->group_begin(group);
  for (uint32_t b = 0; b < group.block_count; ++b) unit_callbacks.block_begin(*group.blocks[b]);
}

void end_group(Group& group) {
  for (uint32_t b = 0; b < group.block_count; ++b) {
    Block& block = *group.blocks[b];
    check_shared_pad(block);
    if (launch_tracer) launch_tracer->block_end(block);
  }
  unit_callbacks.group_end(group);
  if (launch_tracer) launch_tracer->group_end(false);
}

// After an abandoned group nothing of its state can be trusted.
void discard_state(Worker& worker) {
  if (launch_tracer) launch_tracer->group_end(true);
  current_thread = nullptr;
  worker.pending.clear();
  worker.note_progress();
  worker.storage.clear();
  worker.group.blocks.clear();
  worker.group.unit_state.reset();
}

uint64_t spin_limit_seconds() {
  static const uint64_t seconds = spin_seconds_from_environment();
  return seconds;
}

// Every ready thread has yielded and nothing else has happened.
void handle_idle(Worker& worker) {
  if (run_pending(worker)) return;
  constexpr uint64_t kYieldsBetweenLooks = 1 << 12;
  if (worker.idle_yields % kYieldsBetweenLooks != 0) return;
  sched_yield();  // another worker may hold what this one waits for
  const auto idle = std::chrono::steady_clock::now() - worker.idle_since;
  if (idle > std::chrono::seconds(1) && !worker.counted_as_spinning) {
    worker.counted_as_spinning = true;
    worker.state->spinning_workers.fetch_add(1, std::memory_order_relaxed);
  }
  if (worker.state->abandoned.load(std::memory_order_relaxed)) {
    abandon(Fault::kernel_failed, kAbandonedByOther);
  }
  if (idle > std::chrono::seconds(spin_limit_seconds()) &&
      worker.state->spinning_workers.load() >= worker.state->running_workers.load()) {
    report_livelock(worker);
  }
}

}  // namespace

void make_ready(Thread* thread) {
  current_worker->note_progress();
  enqueue(*current_worker, thread);
}

void make_lanes_ready(Warp& warp, uint32_t lanes) {
  Worker& worker = *current_worker;
  // The stacks of one warp fit in the first-level cache, those of a block do not. Now and then the
  // warp takes its turn: it may wait in a loop for another warp.
  constexpr uint32_t kMeetingsBetweenTurns = 64;
  const bool first = !launch_tracer && worker.state->schedule != AsyncSchedule::random &&
                     ++worker.meetings % kMeetingsBetweenTurns != 0;
  if (!first) {
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      make_ready(&warp.threads[__builtin_ctz(rest)]);
    }
    return;
  }
  worker.note_progress();
  while (lanes != 0) {
    const int lane = 31 - __builtin_clz(lanes);  // backwards: the lowest lane then is the first
    lanes &= ~(1u << lane);
    warp.threads[lane].state = ThreadState::ready;
    ++warp.running;
    worker.ready.push_first(&warp.threads[lane]);
  }
}

void block_current(const char* what, void* pc, const Waitable* object) {
  Worker& worker = *current_worker;
  Thread& self = *current_thread;
  worker.note_progress();
  self.state = ThreadState::blocked;
  self.waits_in = what;
  self.waits_for = object;
  self.wait_pc = pc;
  lane_stopped(worker, *self.warp);
  schedule();
  self.waits_in = nullptr;
  self.waits_for = nullptr;
}

void yield_current(void* pc) {
  Worker& worker = *current_worker;
  Thread& self = *current_thread;
  self.spinning = true;  // first: handle_idle() may report who spins, and where
  self.wait_pc = pc;
  if (worker.idle_yields++ == 0) worker.idle_since = std::chrono::steady_clock::now();
  if (worker.idle_yields > worker.ready.size()) handle_idle(worker);
  worker.ready.push(&self);
  schedule();
  if (!launch_tracer) self.spinning = false;
}

void preempt_current(void* pc) {
  Worker& worker = *current_worker;
  Thread& self = *current_thread;
  if (worker.state->abandoned.load(std::memory_order_relaxed)) {
    abandon(Fault::kernel_failed, kAbandonedByOther);
  }
  // A traced group switches by itself, at basic blocks.
  if (worker.ready.empty() || (launch_tracer && self.block->group->traced)) return;
  if (&self == worker.longest) {
    if (++worker.own_turns < worker.other_turns) return;
  } else if (!worker.longest || worker.longest->state != ThreadState::ready) {
    worker.longest = &self;
    worker.own_turns = worker.other_turns = 0;
  } else {
    ++worker.other_turns;
  }
  worker.note_progress();  // it may compute: only the watchdog can say that it hangs
  self.wait_pc = pc;
  self.preempted = true;
  worker.ready.push(&self);
  schedule();
  self.preempted = false;
}

void bb_park(void* pc) {
  Worker& worker = *current_worker;
  Thread& self = *current_thread;
  Warp& warp = *self.warp;
  self.block_before = self.basic_block;
  self.basic_block = reinterpret_cast<uintptr_t>(pc);
  if (warp.running == 1 && warp.parked == 0 && !self.spinning) {
    // The only lane left: nobody to wait for.
    ++warp.instruction;
    ++warp.basic_blocks;
    ++warp.active_lanes;
    self.converged = 1u << self.lane;
    if (warp.instruction % kBlocksBetweenTurns == 0) {  // it may spin on what another warp writes
      worker.ready.push(&self);
      schedule();
    }
    return;
  }
  self.state = ThreadState::parked;
  self.parked_at = static_cast<uint32_t>(warp.instruction);
  if (warp.parked == 0) {
    warp.parked_together = !self.spinning;
    warp.call_depth = self.call_depth;
    warp.parked_at = self.parked_at;
    warp.basic_block = self.basic_block;
  } else if (self.basic_block != warp.basic_block || self.call_depth != warp.call_depth ||
             self.spinning) {
    warp.parked_together = false;
  }
  warp.parked |= 1u << self.lane;
  lane_stopped(worker, warp);
  schedule<cookbook_simt_switch_parked>();
}

std::string triple(uint3 v) { return fmt::format("({},{},{})", v.x, v.y, v.z); }

void fail(const std::string& message, void* pc) { fail(Fault::kernel_failed, message, pc); }

void fail(Fault fault, const std::string& message, void* pc) {
  Worker* worker = current_worker;
  if (!worker) throw KernelError(fault, message);
  std::string text = kernel_name(worker->group.launch->kernel) + ": " + message;
  if (pc) {
    const SourceLocation at = symbolize({pc})[0];
    text += " at " + (at.line != 0 ? describe_call(at) : describe_pc(pc));
  }
  if (current_thread && !worker->running_pending) {
    text += fmt::format(" in block {}, thread {}", triple(current_thread->block->block_idx),
                        triple(current_thread->thread_idx));
  }
  abandon(fault, std::move(text));
}

void defer(std::function<void()> operation) {
  Worker& worker = *current_worker;
  if (worker.state->schedule == AsyncSchedule::early) {
    operation();
  } else {
    worker.pending.push_back(std::move(operation));
  }
}

bool run_pending(Worker& worker) {
  if (worker.pending.empty()) return false;
  worker.note_progress();
  size_t chosen = 0;
  if (worker.state->schedule == AsyncSchedule::random) {
    chosen = random_u32() % worker.pending.size();
  }
  const std::function<void()> operation = std::move(worker.pending[chosen]);
  worker.pending.erase(worker.pending.begin() + static_cast<std::ptrdiff_t>(chosen));
  worker.running_pending = true;
  operation();
  worker.running_pending = false;
  return true;
}

uint32_t random_u32() {
  // splitmix64
  const uint64_t bits = mix_bits(current_worker->random_state);
  current_worker->random_state += 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(bits >> 32);
}

bool run_group(Worker& worker, uint64_t id) {
  try {
    prepare_group(worker, id);
    const Launch& launch = *worker.group.launch;
    blockDim = launch.block;
    gridDim = launch.grid;
    begin_group(worker.group);
    enqueue_all(worker);
    Thread* first = worker.ready.pop();
    enter(first);
    cookbook_simt_switch(&worker.main_stack_pointer, first->stack_pointer);
    if (worker.error.empty()) {
      while (run_pending(worker)) {
      }
      end_group(worker.group);
    }
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    worker.error = error.what();
  }
  if (worker.error.empty()) return true;
  discard_state(worker);
  return false;
}

}  // namespace cookbook::simt
