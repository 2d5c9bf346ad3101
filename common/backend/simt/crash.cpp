// SPDX-License-Identifier: MIT
// A crash inside a kernel names the block and the thread that ran, in one line, and ends the
// process with exit code 1. Outside of kernels, signals do what they did before.
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include "common/backend/simt/worker.hpp"

namespace cookbook::simt {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction previous[NSIG];

const char* describe_signal(int signal, const siginfo_t* info) {
  if ((signal == SIGSEGV || signal == SIGBUS) && current_worker->stacks.in_guard(info->si_addr)) {
    return "stack overflow";
  }
  switch (signal) {
    case SIGSEGV:
    case SIGBUS: return "access to an address that is not mapped";
    case SIGFPE: return "integer division by zero";
    case SIGABRT: return "abort or failed assertion";
    default: return "illegal instruction";
  }
}

void* program_counter(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine->gregs[REG_RIP]);
#else
  return reinterpret_cast<void*>(machine->pc);
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  if (!current_worker || !current_thread) {
    sigaction(signal, &previous[signal], nullptr);
    if (info->si_code <= 0) raise(signal);  // sent by somebody: would not happen again by itself
    return;
  }
  const uint3 block = current_thread->block->block_idx, thread = current_thread->thread_idx;
  char text[512];
  const int length = std::snprintf(
      text, sizeof(text), "error: %s in a kernel, block (%u,%u,%u), thread (%u,%u,%u), address %p",
      describe_signal(signal, info), block.x, block.y, block.z, thread.x, thread.y, thread.z,
      signal == SIGABRT ? nullptr : info->si_addr);
  ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(length));
  // Finding the line allocates memory, which a crash may have left locked: an alarm bounds the
  // wait.
  ::signal(SIGALRM, SIG_DFL);
  alarm(5);
  void* pc = program_counter(context);
  const std::string kernel = kernel_name(current_worker->group.launch->kernel);
  const std::string line = describe_pc(static_cast<char*>(pc) + 1);
  // Not into `text`: a kernel's name has no bound.
  const std::string rest =
      ", kernel " + kernel + (signal == SIGABRT ? std::string() : " at " + line) + "\n";
  written += write(STDERR_FILENO, rest.data(), rest.size());
  _exit(written > 0 ? 1 : 2);
}

// A handler cannot run on the stack whose overflow it reports.
struct AlternateStack {
  static constexpr size_t kBytes = 256 << 10;
  std::unique_ptr<char[]> memory{new char[kBytes]};
  AlternateStack() {
    stack_t stack{};
    stack.ss_sp = memory.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    stack_t stack{};
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  }
};

}  // namespace

void install_crash_handler() {
#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer's own report says more
  static thread_local AlternateStack stack;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int signal : kSignals) sigaction(signal, &action, &previous[signal]);
  });
#endif
}

}  // namespace cookbook::simt
