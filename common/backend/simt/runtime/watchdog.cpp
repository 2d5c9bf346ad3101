// SPDX-License-Identifier: MIT
// A thread that looks at the launch under way ten times per second. Progress is that a thread of
// the launch finishes. A launch without any is asked where it is: each worker notes its stack in a
// signal handler, and the watchdog names the lines, since a worker may have been stopped anywhere.
#include "common/backend/simt/runtime/watchdog.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/worker.hpp"

namespace cookbook::simt {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
constexpr uint64_t kTicksPerSecond = 10;
constexpr uint64_t kStarvedNanoseconds = 10'000'000;  // CPU time of a starved worker, per tick
constexpr int kSignal = SIGPROF;

// What the worker that was asked last has answered.
struct Answer {
  std::atomic<bool> given{false};
  const Thread* thread = nullptr;
  void* frames[CrashRecord::kMaxFrames];
  int count = 0;
} answer;

void note_stack(int, siginfo_t*, void*) {
  const int error = errno;
  answer.thread = current_thread;
  answer.count = walk_stack(answer.frames, CrashRecord::kMaxFrames, true);
  answer.given = true;
  errno = error;
}

// Where `slot` is: its threads, and the line of the one that runs.
std::string describe_worker(LaunchState::Slot& slot) {
  answer.given = false;
  syscall(SYS_tgkill, getpid(), slot.os_thread, kSignal);
  for (int i = 0; i < 1000 && !answer.given; ++i) std::this_thread::sleep_for(1ms);
  const Worker* worker = slot.worker;
  if (!worker) return "";
  RunningThread running;
  if (answer.given) {
    running.thread = answer.thread;
    running.line = describe_stack(answer.frames, answer.count);
  }
  return describe_group(worker->group, &running);
}

[[noreturn]] void end_process(LaunchState& state, uint64_t seconds) {
  std::string text;
  for (LaunchState::Slot& slot : state.slots) {
    if (!slot.worker) continue;
    const std::string group = describe_worker(slot);
    if (!text.empty() && !group.empty()) text += "; ";
    text += group;
  }
  end_hung_process(fmt::format(
      "{}: no thread has finished for {} s (COOKBOOK_TIME_LIMIT or --time-limit sets this): {}{}",
      kernel_name(state.launch->kernel), seconds, text, describe_waiting_blocks(state)));
}

// The CPU time of a thread of this process. 0: there is no such thread.
uint64_t cpu_nanoseconds(int os_thread) {
  constexpr unsigned kPerThread = 4, kScheduled = 2;  // as the kernel numbers such clocks
  timespec time{};
  const auto clock =
      static_cast<clockid_t>(~static_cast<unsigned>(os_thread) << 3 | kPerThread | kScheduled);
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

// Whether a thread of this process could run: it runs, or waits for a CPU.
bool is_runnable(int os_thread) {
  const std::string path = fmt::format("/proc/self/task/{}/stat", os_thread);
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (!file) return false;
  char state = 0;
  const int read = std::fscanf(file, "%*d (%*[^)]) %c", &state);
  std::fclose(file);
  return read == 1 && state == 'R';
}

class Watchdog {
 public:
  Watchdog() {
    std::thread([this] { serve(); }).detach();
  }

  void begin(LaunchState& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = &state;
    idle_ticks_ = quiet_ticks_ = 0;
    if (asleep_) wake_.notify_one();
  }

  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = nullptr;
  }

 private:
  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      asleep_ = true;
      wake_.wait(lock, [this] { return state_ != nullptr; });
      asleep_ = false;
      while (state_) {
        lock.unlock();
        std::this_thread::sleep_for(kTick);
        lock.lock();
        if (state_) look(*state_);
      }
    }
  }

  // Ticks are counted rather than time: a process that is stopped has none.
  void look(LaunchState& state) {
    uint64_t finished = state.next_group;
    for (const LaunchState::Slot& slot : state.slots) {
      if (const Worker* worker = slot.worker) finished += worker->finished_threads;
    }
    if (finished != finished_) {
      finished_ = finished;
      idle_ticks_ = quiet_ticks_ = 0;
      ++crash_record().progress;
      return;
    }
    constexpr uint64_t kTicksBeforeMore = 2;
    if (++quiet_ticks_ >= kTicksBeforeMore) state.add_workers();
    // On a busy machine a worker that the others wait for may not get a CPU for many seconds.
    // Not so where blocks may wait for each other: those workers take the CPUs from each other.
    if (!state.has_more_workers && a_worker_starved(state)) return;
    const uint64_t limit = time_limit();
    if (++idle_ticks_ >= limit * kTicksPerSecond && limit > 0) end_process(state, limit);
  }

  // Whether a worker could have run since the last look, and hardly did: on a busy machine even the
  // lowest priority has a millisecond now and then.
  bool a_worker_starved(const LaunchState& state) {
    bool starved = false;
    for (const LaunchState::Slot& slot : state.slots) {
      if (!slot.worker) continue;
      uint64_t& before = cpu_before_[slot.os_thread];
      const uint64_t now = cpu_nanoseconds(slot.os_thread);
      if (now - before < kStarvedNanoseconds && is_runnable(slot.os_thread)) starved = true;
      before = now;
    }
    return starved;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<int, uint64_t> cpu_before_;  // by OS thread
  LaunchState* state_ = nullptr;
  bool asleep_ = false;
  uint64_t finished_ = 0, idle_ticks_ = 0, quiet_ticks_ = 0;
};

std::atomic<uint64_t>& limit_seconds() {
  static std::atomic<uint64_t> seconds{time_limit_from_environment()};
  return seconds;
}

}  // namespace

void set_time_limit(uint64_t seconds) { limit_seconds() = seconds; }
uint64_t time_limit() { return limit_seconds(); }

void answer_watchdog() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &note_stack;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kSignal, &action, nullptr);
  });
}

Watch::Watch(LaunchState& state) { of_this_process<Watchdog>().begin(state); }
Watch::~Watch() { of_this_process<Watchdog>().end(); }

}  // namespace cookbook::simt
