// SPDX-License-Identifier: MIT
// What is known when a kernel ends its process: by a crash, by exit(), or because it never
// finishes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/backend/simt/language/vector_types.hpp"

namespace cookbook::simt {

/// Exit status of a process that a kernel ended.
inline constexpr int kCrashStatus = 3;

/// Filled in by a signal handler, so plain data: it may lie in memory that a parent process shares,
/// which then names the lines. The stack, heap and thread-local storage of a process that crashed
/// cannot be trusted.
struct CrashRecord {
  enum class End { none, crashed, exited, hung };
  static constexpr int kMaxFrames = 32;

  std::atomic<uint64_t> progress{0};         // changes as long as launches and threads finish
  std::atomic<const void*> kernel{nullptr};  // of the last launch
  std::atomic<bool> in_kernel{false};
  std::atomic<End> end{End::none};
  int signal = 0;
  void* address = nullptr;  // of the access
  bool stack_overflow = false;
  bool has_address = false;    // misaligned accesses of 16 bytes have none
  void* frames[kMaxFrames]{};  // return addresses, innermost first
  int frame_count = 0;
  bool has_thread = false;
  uint3 block{}, thread{};
  char doing[160]{};  // what host code was called for; empty: nobody said
  char text[8192]{};  // of a hang: where every thread is; of a crash that someone has found: what
};

/// From now on the crashes of this process go to `record`, and no longer to standard error;
/// crashes of host code and calls of exit() too. For a child process.
void record_crashes(CrashRecord* record);

/// What host code is called for from now on, such as "reference_row() of out": a crash says it.
void note_host_code(std::string_view what);

/// From now on a crash of host code ends this process with kCrashStatus and one line; so does an
/// exception that nothing catches. last_throw() is known.
void report_host_crashes();

/// "problem.hpp:40", where host code threw last; "" where that is not known.
std::string last_throw();

/// While it lives, a stack overflow of this thread is reported. For threads that run host code, on
/// whose stack it lies.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  char memory_[128 << 10];  // that nothing touches before a crash
};

/// One line that says how the process ended: what happened, block and thread, kernel and line.
/// Its code must lie at the same addresses in the process that calls this: a fork's does.
std::string describe(const CrashRecord& record);

/// "kernel sgemm (sgemm.cuh:12)".
std::string describe_kernel(const void* kernel);

/// Ends the process when no thread of a launch finishes for this number of seconds; 0: never. The
/// initial value is COOKBOOK_TIME_LIMIT, or 60.
void set_time_limit(uint64_t seconds);
uint64_t time_limit();

// ---- for the runtime ----

// A signal handler that names the line, and of a kernel the block and thread. On a stack of its own
// for this OS thread; on the others it names all but a stack overflow.
void install_crash_handler();

// Where not null: a floating-point operation of a kernel that traps. True: it goes on.
inline bool (*on_floating_point_trap)(void* context) = nullptr;

// Where not null: what a kernel does that uses this address, where nothing is mapped; "": unknown.
inline std::string (*describe_unmapped)(const void* address) = nullptr;

// Where a kernel's null pointer may come from, as the end of a sentence; "" if nobody knows.
inline std::atomic<const char*> source_of_null{""};

// Where not null: "the host variable 'n'", which the address is in and no kernel may use; "": none.
inline std::string (*describe_host_variable)(const void* address) = nullptr;

// From now on a crash of a kernel is an error of its launch, as on a GPU, and the program goes on.
void fail_on_crash();

// The record of this process.
CrashRecord& crash_record();

// Notes where this thread throws: called for each exception.
void note_throw();

// Reports `text`, what all threads do in a launch that makes no progress, and ends the process.
[[noreturn]] void end_hung_process(const std::string& text);

// Aborts; the report says `text` instead.
[[noreturn]] void end_process(std::string_view text);

// The return addresses of this thread's stack, innermost first; in a signal handler those from the
// interrupted instruction on. Returns their number.
int walk_stack(void** frames, int most, bool in_signal_handler);

}  // namespace cookbook::simt
