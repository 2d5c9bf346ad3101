// SPDX-License-Identifier: MIT
// A crash inside a kernel names the block, the thread and the line that ran, and ends the process
// with kCrashStatus. A crash of host code is reported in the same way, and then has its former
// effect, unless a parent process keeps the record or report_host_crashes() was called.
#include "common/backend/simt/runtime/crash.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>

#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/worker.hpp"

namespace cookbook::simt {
namespace {

using End = CrashRecord::End;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction previous[NSIG];

CrashRecord own_record;
thread_local char* failure_stack = nullptr;
CrashRecord* record = &own_record;

bool host_crash_ends = false;  // with a line and kCrashStatus

// The stack of the last exception of host code.
std::mutex throw_mutex;
void* throw_frames[CrashRecord::kMaxFrames];
int throw_count = 0;

bool has_parent() { return record != &own_record; }

// How far from the stack pointer an access still is one of the stack: a function may have large
// variables.
constexpr uintptr_t kFrameBytes = 1 << 20;

const char* describe_signal(const CrashRecord& crash) {
  if (crash.stack_overflow) return "stack overflow";
  switch (crash.signal) {
    case SIGSEGV:
      if (!crash.has_address) return "misaligned access of 16 bytes, or to no possible address";
      [[fallthrough]];
    case SIGBUS: return "access to an address that is not mapped";
    case SIGFPE: return "integer division by zero";
    case SIGABRT: return "abort or failed assertion";
    default: return "illegal instruction";
  }
}

// "file.cuh:17" of the first line of a kernel; "" where it is not known.
std::string first_line(const void* kernel) {
  return describe_line(symbolize({const_cast<char*>(static_cast<const char*>(kernel)) + 1})[0]);
}

void note_thread(CrashRecord& crash) {
  if (!crash.in_kernel || !current_worker || !current_thread) return;
  crash.block = current_thread->block->block_idx;
  crash.thread = current_thread->thread_idx;
  crash.has_thread = true;
}

// Steps that need a less damaged process come later: if one fails, the parent has what was stored
// before.
void record_crash(int signal, const siginfo_t* info, const void* context) {
  CrashRecord& crash = *record;
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto pc = static_cast<uintptr_t>(machine->gregs[REG_RIP]);
  const auto stack = static_cast<uintptr_t>(machine->gregs[REG_RSP]);
  const auto caller = [stack] { return *reinterpret_cast<void**>(stack); };
#else
  const auto stack = static_cast<uintptr_t>(machine->sp);
  const auto pc = static_cast<uintptr_t>(machine->pc);
  const auto caller = [machine] { return reinterpret_cast<void*>(machine->regs[30]); };
#endif
  crash.signal = signal;
  crash.address = signal == SIGABRT ? nullptr : info->si_addr;
  crash.has_address = signal != SIGSEGV || info->si_code != SI_KERNEL;
  crash.frames[0] = reinterpret_cast<void*>(pc + 1);  // as a return address, which is one behind
  crash.frame_count = 1;
  crash.end = End::crashed;
  note_thread(crash);
  if (signal == SIGSEGV || signal == SIGBUS) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    crash.stack_overflow = crash.has_thread ? current_worker->stacks.in_guard(info->si_addr)
                                            : !crash.in_kernel && address < stack + 4096 &&
                                                  stack < address + kFrameBytes;
  }
  void* frames[CrashRecord::kMaxFrames];
  // The unwinder would read code that is not there.
  const bool has_code = signal != SIGSEGV || reinterpret_cast<uintptr_t>(info->si_addr) != pc;
  const int count = has_code ? walk_stack(frames, CrashRecord::kMaxFrames, true) : 0;
  if (count > 1) {
    std::copy(frames, frames + count, crash.frames);
    crash.frame_count = count;
  } else {  // a jump to an address without code: its caller may be on top of the stack
    crash.frames[1] = caller();
    crash.frame_count = 2;
  }
}

// Whether the line was written.
bool report() {
  // Finding the line allocates memory, and a crash may have left the allocator locked: an alarm
  // bounds the wait.
  ::signal(SIGALRM, SIG_DFL);
  alarm(5);
  const std::string line = "error: " + describe(*record) + "\n";
  return write(STDERR_FILENO, line.data(), line.size()) > 0;
}

[[noreturn]] void report_and_exit() {
  if (has_parent()) _exit(kCrashStatus);
  _exit(report() ? kCrashStatus : 2);
}

bool fails_on_crash = false;

// A crash of a kernel as an error of its launch. On a stack of its own: the thread's may be full.
[[noreturn]] void fail_after_crash() {
  const CrashRecord& crash = *record;
  record->end = End::none;
  std::string text = describe_signal(crash);
  const std::string known = describe_unmapped && crash.has_address && !crash.stack_overflow
                                ? describe_unmapped(crash.address)
                                : "";
  if (!known.empty()) {
    text = known;
  } else if (crash.stack_overflow) {
    text += fmt::format(", more than the {} KB that a thread has here,", stack_bytes() >> 10);
  } else if (crash.signal != SIGFPE && crash.has_address) {
    text += fmt::format(", {}", crash.address);
  }
  const std::string line = describe_stack(crash.frames, crash.frame_count);
  if (!line.empty()) text += " at " + line;
  const bool is_access = crash.signal == SIGSEGV || crash.signal == SIGBUS;
  fail(is_access && !crash.stack_overflow ? Fault::out_of_bounds : Fault::kernel_failed, text,
       nullptr);
}

void return_to_failure(void* context, char* stack_end) {
  auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  machine->gregs[REG_RSP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(stack_end) - 8);
  machine->gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<uintptr_t>(&fail_after_crash));
#else
  machine->sp = reinterpret_cast<uintptr_t>(stack_end);
  machine->pc = reinterpret_cast<uintptr_t>(&fail_after_crash);
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  const bool is_integer = info->si_code == FPE_INTDIV || info->si_code == FPE_INTOVF;
  if (signal == SIGFPE && !is_integer && on_floating_point_trap && current_thread &&
      on_floating_point_trap(context)) {
    return;
  }
  if (!has_parent() && !(current_worker && current_thread)) {
    if (previous[signal].sa_handler == SIG_DFL) {
      record_crash(signal, info, context);
      const bool said = report();
      if (said && host_crash_ends) _exit(kCrashStatus);
    }
    sigaction(signal, &previous[signal], nullptr);
    if (info->si_code <= 0) raise(signal);  // sent by a process: would not happen again
    return;
  }
  record_crash(signal, info, context);
  if (fails_on_crash && signal != SIGABRT && failure_stack) {
    return return_to_failure(context, failure_stack);
  }
  report_and_exit();
}

// exit() and what calls it would run static destructors on a fiber, under its other threads.
void exit_was_called() {
  if (record->end == End::none) {
    record->end = End::exited;
    note_thread(*record);
    record->frame_count = walk_stack(record->frames, CrashRecord::kMaxFrames, false);
  }
  _exit(kCrashStatus);
}

// exit() by host code that note_host_code() has named: of a process without a parent.
void exit_in_host_code() {
  if (has_parent() || own_record.doing[0] == 0) return;
  own_record.end = End::exited;
  own_record.frame_count = walk_stack(own_record.frames, CrashRecord::kMaxFrames, false);
  std::fflush(nullptr);
  report();
  _exit(kCrashStatus);
}

// A handler cannot run on the stack whose overflow it reports.
struct AlternateStack {
  static constexpr size_t kBytes = 256 << 10;
  std::unique_ptr<char[]> memory{new char[2 * kBytes]};  // the second half: fail_after_crash()
  AlternateStack() {
    stack_t stack{};
    stack.ss_sp = memory.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
    const auto end = reinterpret_cast<uintptr_t>(memory.get() + 2 * kBytes);
    failure_stack = reinterpret_cast<char*>(end / 64 * 64);
  }
  ~AlternateStack() {
    stack_t stack{};
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  }
};

struct Walk {
  void** frames;
  int most, count;
  bool skipping;  // the handler's own frames, up to the interrupted one
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  int before_instruction = 0;
  const uintptr_t ip = _Unwind_GetIPInfo(context, &before_instruction);
  if (ip == 0 || walk.count == walk.most) return _URC_END_OF_STACK;
  if (before_instruction) walk.skipping = false;
  if (!walk.skipping) {
    walk.frames[walk.count++] = reinterpret_cast<void*>(ip + (before_instruction ? 1 : 0));
  }
  return _URC_NO_REASON;
}

}  // namespace

int walk_stack(void** frames, int most, bool in_signal_handler) {
  Walk walk{frames, most, 0, in_signal_handler};
  _Unwind_Backtrace(&visit, &walk);
  return walk.count;
}

CrashRecord& crash_record() { return *record; }

void fail_on_crash() { fails_on_crash = true; }

void note_host_code(std::string_view what) {
  const size_t length = std::min(what.size(), sizeof(record->doing) - 1);
  std::memcpy(record->doing, what.data(), length);
  record->doing[length] = 0;
}

void note_throw() {
  if (!host_crash_ends || (current_worker && current_thread)) return;
  const std::lock_guard lock(throw_mutex);
  throw_count = walk_stack(throw_frames, CrashRecord::kMaxFrames, false);
}

std::string last_throw() {
  const std::lock_guard lock(throw_mutex);
  return describe_stack(throw_frames, throw_count);
}

namespace {
// In place of the C++ library's own, which writes a text of its own.
[[noreturn]] void end_uncaught() {
  std::string what = "an exception was not caught";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      what += std::string(": ") + error.what();
    } catch (...) {
    }
  }
  end_process(what);
}
}  // namespace

void report_host_crashes() {
  install_crash_handler();
  host_crash_ends = true;
  std::set_terminate(&end_uncaught);
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(&exit_in_host_code); });
}

CrashStack::CrashStack() {
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = sizeof(memory_);
  sigaltstack(&stack, nullptr);
}
CrashStack::~CrashStack() {
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

void record_crashes(CrashRecord* shared) {
  std::memcpy(shared->doing, record->doing, sizeof(shared->doing));
  record = shared;
  report_host_crashes();
  std::atexit(&exit_was_called);
}

std::string describe_kernel(const void* kernel) {
  const std::string line = first_line(kernel);
  return "kernel " + kernel_name(kernel) + (line.empty() ? "" : " (" + line + ")");
}

std::string describe(const CrashRecord& crash) {
  if (crash.end == End::hung) {
    return std::string(crash.text, strnlen(crash.text, sizeof(crash.text)));
  }
  std::string text = crash.end == End::exited ? "exit() was called"
                     : crash.text[0] != 0     ? crash.text
                                              : describe_signal(crash);
  text += crash.in_kernel ? " in a kernel" : " in host code";
  if (!crash.in_kernel && crash.doing[0] != 0) text += fmt::format(" ({})", crash.doing);
  if (crash.has_thread) {
    text += fmt::format(", block {}, thread {}", triple(crash.block), triple(crash.thread));
  }
  const bool is_access = crash.signal == SIGSEGV || crash.signal == SIGBUS;
  if (crash.end == End::crashed && is_access && crash.has_address) {
    char address[32];
    std::snprintf(address, sizeof(address), ", address %p", crash.address);
    text += address;
  }
  const void* kernel = crash.kernel;
  const std::string line = describe_stack(crash.frames, crash.frame_count);
  if (kernel && crash.in_kernel && !line.empty()) {
    return fmt::format("{}, kernel {} at {}", text, kernel_name(kernel), line);
  }
  if (!line.empty()) text += " at " + line;
  const bool says_what = !crash.in_kernel && crash.doing[0] != 0;
  if (kernel && !says_what) {
    text += (crash.in_kernel ? ", " : ", after ") + describe_kernel(kernel);
  }
  return text;
}

namespace {
void set_text(CrashRecord& crash, std::string_view text) {
  const size_t length = std::min(text.size(), sizeof(crash.text) - 1);
  std::memcpy(crash.text, text.data(), length);
  crash.text[length] = 0;
}
}  // namespace

void end_hung_process(const std::string& text) {
  set_text(*record, text);
  record->end = End::hung;
  report_and_exit();
}

void end_process(std::string_view text) {
  set_text(*record, text);
  std::abort();
}

void install_crash_handler() {
#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer's own report says more
  static thread_local AlternateStack stack;
  static std::once_flag once;
  std::call_once(once, [] {
    void* frames[4];
    walk_stack(frames, 4, false);  // the first walk may load a library, which no handler can
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int signal : kSignals) sigaction(signal, &action, &previous[signal]);
  });
#endif
}

}  // namespace cookbook::simt
