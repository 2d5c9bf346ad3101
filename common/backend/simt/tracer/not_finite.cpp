// SPDX-License-Identifier: MIT
//
// Where a NaN or an infinity comes from. The CPU traps an invalid operation, which is one that
// makes a NaN of numbers: infinity - infinity, 0 / 0, sqrt(-1). An operation on a NaN is none. It
// also traps what makes an infinity of finite numbers: a division by zero and an overflow. x86-64
// only: not every aarch64 traps.
#include <algorithm>

#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "common/backend/simt/tracer/library_code.hpp"
#include "common/backend/simt/tracer/worker_tracer.hpp"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#include <xmmintrin.h>

extern "C" char __executable_start, etext;
#endif

namespace cookbook::simt::tracing {

#if defined(__x86_64__)
namespace {

// Of the register MXCSR: flags, and where they are its masks.
constexpr unsigned kInvalid = 1, kByZero = 4, kOverflow = 8, kFlags = 0x3f;
constexpr unsigned kMasks = (kInvalid | kByZero | kOverflow) << 7;
constexpr greg_t kSingleStep = 0x100;  // of the flags
constexpr int kMostTraps = 4096;       // of a group: a trap takes microseconds

thread_local int traps = 0;

unsigned& mxcsr_of(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.fpregs->mxcsr;
}

/// Whether the instruction has a floating-point result. Conversions to whole numbers and
/// comparisons trap as well, and so do minimum and maximum of a NaN. (Intel SDM 2, "VEX Prefix".)
bool makes_nan(const unsigned char* code) {
  unsigned map = 1;
  if (*code == 0xc5) {
    code += 2;
  } else if (*code == 0xc4) {
    map = code[1] & 0x1fu;
    code += 3;
  } else {
    while (*code == 0x66 || *code == 0xf2 || *code == 0xf3 || (*code & 0xf0) == 0x40) ++code;
    if (*code++ != 0x0f) return false;
  }
  const unsigned operation = *code;
  if (map == 2) {  // fused multiply-add
    return operation >= 0x96 && operation <= 0xbf && (operation & 0xf) >= 6;
  }
  return map == 1 && (operation == 0x51 || operation == 0x58 || operation == 0x59 ||
                      operation == 0x5c || operation == 0x5e);
}

/// The instruction is performed without a trap, and the next ones with it.
bool pass_over(void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const unsigned raised = mxcsr_of(context);
  mxcsr_of(context) = (raised | kMasks) & ~kFlags;
  if (worker_tracer == nullptr) return true;
  const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  const bool is_invalid = (raised & kInvalid) != 0, is_infinite = (raised & (kByZero | kOverflow));
  if (is_infinite || (is_invalid && makes_nan(code))) {
    void* frames[CrashRecord::kMaxFrames];
    const int count = walk_stack(frames, CrashRecord::kMaxFrames, true);
    const auto is_own = [](const void* pc) {
      return pc > &__executable_start && pc < &etext && !library_code.contains(pc);
    };
    void** const frame = std::find_if(frames, frames + count, is_own);
    if (frame == frames + count) {
    } else if (is_infinite) {
      worker_tracer->infinity((raised & kByZero) != 0 ? "a division by zero" : "an overflow",
                              *frame);
    } else {
      worker_tracer->not_a_number(*frame);
    }
  }
  if (++traps < kMostTraps) registers[REG_EFL] |= kSingleStep;
  return true;
}

void after_step(int, siginfo_t*, void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kSingleStep;
  mxcsr_of(context) &= ~(kMasks | kFlags);
}

}  // namespace

void WorkerTracer::trap_not_finite(bool on) {
  if (!find_not_finite) return;
  if (on && on_floating_point_trap == nullptr) {
    struct sigaction action {};
    action.sa_sigaction = &after_step;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTRAP, &action, nullptr);
    on_floating_point_trap = &pass_over;
  }
  traps = 0;
  const unsigned others = _mm_getcsr() & ~(kMasks | kFlags);
  _mm_setcsr(on ? others : others | kMasks);
}
#else
void WorkerTracer::trap_not_finite(bool) {}
#endif

void WorkerTracer::not_a_number(void* pc) {
  note(Kind::not_a_number, 0, pc, *current_thread, Op::load);
}

void WorkerTracer::infinity(const char* why, void* pc) {
  Occurrence& found = note(Kind::infinity, 0, pc, *current_thread, Op::load);
  if (found.count == 1) found.detail = why;
}

}  // namespace cookbook::simt::tracing
