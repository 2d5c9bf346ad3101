// SPDX-License-Identifier: MIT
// A thread that looks at the launch under way ten times per second. Progress is that a thread of
// the launch finishes. In one without any for a while, a thread may spin on what another one of its
// block does, so signals make them take turns. At the end a launch is asked where it is: each
// worker notes its stack in a signal handler, and the watchdog names the lines, since a worker may
// have been stopped anywhere.
#include "common/backend/simt/runtime/watchdog.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/settings.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/worker.hpp"

namespace cookbook::simt {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 100ms;
// Of a thread, where threads take turns: longer the longer none has finished, because most of them
// then compute, and each turn costs a signal.
constexpr auto kShortestTurn = 100us, kLongestTurn = 1000us;
constexpr int kTurnsPerQuiet = 50;
// A launch without progress for so long has its threads take turns: the second, where that has
// happened in this process before.
constexpr auto kQuiet = 200ms, kQuietAgain = 2ms;
constexpr uint64_t kTicksPerSecond = 10;
constexpr uint64_t kStarvedNanoseconds = 10'000'000;  // CPU time of a starved worker, per tick
constexpr int kSignal = SIGPROF;
constexpr int kPreempt = SIGURG;  // which does nothing where nobody handles it

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

// ---- turns ----

std::atomic<bool> preempted{false};  // some thread was, in this process
std::atomic<bool> reports{false};    // where threads are, which then should stay there

bool is_preemptible(uintptr_t pc) {
  return pc >= preemptible_code.begin && pc < preemptible_code.end;
}

// The frames of an interrupted fiber from the innermost one on.
struct Frames {
  bool in_handler = true;
  int outside = 0;  // that are not of the program: thread_main() always is one, the last
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* data) {
  auto& frames = *static_cast<Frames*>(data);
  int before_instruction = 0;
  const uintptr_t ip = _Unwind_GetIPInfo(context, &before_instruction);
  if (ip == 0) return _URC_END_OF_STACK;
  if (before_instruction) frames.in_handler = false;
  if (frames.in_handler) return _URC_NO_REASON;
  if (!is_preemptible(before_instruction ? ip : ip - 1)) ++frames.outside;
  return frames.outside > 1 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void take_turns(int, siginfo_t*, void* context) {
  const Worker* const worker = current_worker;
  if (!worker || !current_thread || worker->running_pending || reports) return;
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto pc = static_cast<uintptr_t>(machine.gregs[REG_RIP]);
#else
  const auto pc = static_cast<uintptr_t>(machine.pc);
#endif
  if (!is_preemptible(pc)) return;
  Frames frames;
  _Unwind_Backtrace(&look_at_frame, &frames);
  if (frames.in_handler || frames.outside != 1) return;
  const int error = errno;  // of the fiber; others set it before this one goes on
  preempted.store(true, std::memory_order_relaxed);
  preempt_current(reinterpret_cast<void*>(pc + 1));  // as a return address, which is one behind
  errno = error;
}

void ask(int os_thread) {
  answer.given = false;
  syscall(SYS_tgkill, getpid(), os_thread, kSignal);
  for (int i = 0; i < 1000 && !answer.given; ++i) std::this_thread::sleep_for(1ms);
}

// Where `slot` is: its threads, and the line of the one that runs.
std::string describe_worker(LaunchState::Slot& slot) {
  ask(slot.os_thread);
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
  reports = true;
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
  using Clock = std::chrono::steady_clock;

 public:
  Watchdog() {
    std::thread([this] { serve(); }).detach();
  }

  void begin(LaunchState& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_ = &state;
    idle_ticks_ = quiet_ticks_ = 0;
    quiet_since_ = last_tick_ = Clock::now();
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
        const bool expects_spins = preempted.load(std::memory_order_relaxed);
        const auto pause = turns_ || expects_spins ? turn_ : kTick;
        lock.unlock();
        std::this_thread::sleep_for(pause);
        lock.lock();
        if (!state_) break;
        if (preemptible_code.end != 0) let_take_turns(*state_, expects_spins);
        if (Clock::now() - last_tick_ < kTick) continue;
        last_tick_ = Clock::now();
        look(*state_);
      }
    }
  }

  static uint64_t finished_of(const LaunchState& state) {
    uint64_t finished = state.next_group;
    for (const LaunchState::Slot& slot : state.slots) {
      if (const Worker* worker = slot.worker) finished += worker->finished_threads;
    }
    return finished;
  }

  void let_take_turns(const LaunchState& state, bool expects_spins) {
    const auto now = Clock::now();
    const uint64_t finished = finished_of(state);
    if (finished != finished_before_turns_) {
      finished_before_turns_ = finished;
      quiet_since_ = now;
    }
    const auto quiet = now - quiet_since_;
    turns_ = quiet >= (expects_spins ? Clock::duration(kQuietAgain) : kQuiet);
    turn_ = std::clamp<Clock::duration>(quiet / kTurnsPerQuiet, kShortestTurn, kLongestTurn);
    if (!turns_) return;
    for (const LaunchState::Slot& slot : state.slots) {
      if (slot.worker) syscall(SYS_tgkill, getpid(), slot.os_thread, kPreempt);
    }
  }

  // Ticks are counted rather than time: a process that is stopped has none.
  void look(LaunchState& state) {
    const uint64_t finished = finished_of(state);
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
  bool turns_ = false;  // threads take turns
  Clock::duration turn_ = kShortestTurn;
  uint64_t finished_before_turns_ = 0;
  Clock::time_point quiet_since_, last_tick_;
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
    // On the fiber's own stack, which it keeps while others run; and these may be interrupted, too.
    action.sa_sigaction = &take_turns;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    sigaction(kPreempt, &action, nullptr);
  });
}

std::string line_of_thread(int os_thread) {
  answer_watchdog();
  ask(os_thread);
  return answer.given ? describe_stack(answer.frames, answer.count) : "";
}

Watch::Watch(LaunchState& state) { of_this_process<Watchdog>().begin(state); }
Watch::~Watch() { of_this_process<Watchdog>().end(); }

}  // namespace cookbook::simt
