// SPDX-License-Identifier: MIT
// The state of one OS thread that runs groups of blocks. Private to the core of the runtime.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/fiber.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {

// Threads that can run, first in, first out, except those that go first. Each thread is in it once
// at most.
class ReadyQueue {
 public:
  void reset(size_t capacity) {
    size_t size = 64;
    while (size < capacity) size *= 2;
    if (slots_.size() < size) slots_.resize(size);
    head_ = tail_ = 0;
  }
  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  void push(Thread* thread) { slots_[tail_++ & (slots_.size() - 1)] = thread; }
  void push_first(Thread* thread) { slots_[--head_ & (slots_.size() - 1)] = thread; }
  Thread* pop() {
    // The stack of the one after it comes while this one runs.
    if (size() > 1) __builtin_prefetch(slots_[(head_ + 1) & (slots_.size() - 1)]->stack_pointer);
    return slots_[head_++ & (slots_.size() - 1)];
  }

 private:
  std::vector<Thread*> slots_;
  uint32_t head_ = 0, tail_ = 0;
};

struct Worker;

// Shared by the workers of one launch.
struct LaunchState {
  // A worker while it works on this launch.
  struct Slot {
    std::atomic<Worker*> worker{nullptr};
    int os_thread = 0;
  };
  explicit LaunchState(size_t workers) : slots(workers) {}

  std::vector<Slot> slots;
  std::atomic<size_t> next_slot{0};
  const Launch* launch = nullptr;
  AsyncSchedule schedule = AsyncSchedule::late;
  uint64_t seed = 1;
  std::atomic<uint64_t> next_group{0};  // groups that have started; beyond group_total: all
  uint64_t group_total = 0;
  std::function<uint64_t(uint64_t)> group_at;  // the i-th group that starts
  // The next group, which then does not start but is the caller's; false: all have started.
  bool take_group(uint64_t& group) {
    uint64_t next = next_group.load();
    do {
      if (next >= group_total) return false;
    } while (!next_group.compare_exchange_weak(next, next + 1));
    group = group_at(next);
    return true;
  }
  std::atomic<bool> abandoned{false};
  // For the watchdog: groups that have started may wait for others that have not.
  std::function<void()> add_workers;
  bool has_more_workers = false;  // it added some
  std::atomic<int> running_workers{0};
  std::atomic<int> spinning_workers{0};  // whose threads have all been spinning for a while
};

// Addresses for the shared memory of a worker's blocks: the low 32 bits of a pointer are the
// address in the shared window, as on a GPU, where programs rely on it.
class SharedWindow {
 public:
  SharedWindow() = default;
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  // Zeroed memory of block `index`; null where there is no room, so that others must do.
  char* block(uint32_t index, size_t bytes);

 private:
  char* reserved_ = nullptr;
  char* window_ = nullptr;  // aligned to its size
  bool failed_ = false;
};

struct Worker {
  LaunchState* state = nullptr;
  Group group;
  ReadyQueue ready;
  std::deque<std::function<void()>> pending;  // asynchronous operations
  uint32_t meetings = 0;                      // of lanes, completed by this worker in plain mode
  bool running_pending = false;               // an operation runs on the current thread's stack
  uint64_t random_state = 0;
  void* main_stack_pointer = nullptr;
  std::string error;          // set: the group was abandoned
  Fault fault = Fault::none;  // which error
  StackPool stacks;
  std::atomic<uint64_t> finished_threads{0};  // ever; written by this OS thread only

  // Spin loops: yields since anything else happened.
  uint64_t idle_yields = 0;
  bool counted_as_spinning = false;
  std::chrono::steady_clock::time_point idle_since;

  // Preemption: the thread that has run for long, and the turns that it and the others have had
  // since. Half of the time is its own, so that a long computation takes twice as long at most.
  const Thread* longest = nullptr;
  uint64_t own_turns = 0, other_turns = 0;

  struct BlockStorage {
    std::unique_ptr<Thread[]> threads;
    size_t thread_capacity = 0;
    std::unique_ptr<Warp[]> warps;
    size_t warp_capacity = 0;
    std::unique_ptr<char, void (*)(void*)> shared{nullptr, nullptr};
    size_t shared_capacity = 0;
  };
  SharedWindow shared_window;
  std::vector<BlockStorage> storage;  // of group.blocks, by index

  void note_progress() {
    if (idle_yields != 0) {
      idle_yields = 0;
      if (counted_as_spinning) {
        counted_as_spinning = false;
        state->spinning_workers.fetch_sub(1, std::memory_order_relaxed);
      }
    }
  }
};

// Worker::error of a group that gave up only because another one failed.
inline constexpr const char* kAbandonedByOther = "another group of the launch failed";

// Runs group `id` of the launch to its end. False: it was abandoned and worker.error says why.
bool run_group(Worker& worker, uint64_t id);

// Runs one deferred operation; false if there is none.
bool run_pending(Worker& worker);

// The thread of a group that its worker runs, and its line ("" if not known).
struct RunningThread {
  const Thread* thread = nullptr;
  std::string line;
};

// "block (0,0,0): threads 0..31 wait in __syncthreads at sgemm.cuh:40; ...". From another OS thread
// too, as long as the group lasts: what then changes is described as before or after.
std::string describe_group(const Group& group, const RunningThread* running = nullptr);

// "; 5 blocks have not started", or nothing if all have.
std::string describe_waiting_blocks(const LaunchState& state);

// The T of this process, made on first use; one caller at a time. A forked process gets its own,
// since threads do not survive a fork. Never destroyed: it may be in use when the process ends.
template <class T>
T& of_this_process() {
  static T* instance = nullptr;
  static pid_t owner = 0;
  if (owner != getpid()) {
    instance = new T;
    owner = getpid();
  }
  return *instance;
}

}  // namespace cookbook::simt
