// SPDX-License-Identifier: MIT
// The process of a submission, which runs in a sandbox: it reads tasks from standard input, runs
// the submission's kernels and answers on standard output with the bytes of every tensor and with
// what the tracer counted. It has no reference, no claim, and no say in the verdict.
//
// Each task is run by a child process. The submission's code runs in children only: what it does
// to its process ends with the task.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/observe.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/host_access.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"
#include "tools/grading/buffers.hpp"
#include "tools/grading/entry.hpp"
#include "tools/grading/message.hpp"
#include "tools/grading/trace_json.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "common/harness/verdict/isolate.hpp"

namespace cookbook::grading {
namespace {

using nlohmann::json;

// All tensors as they are now, and the first one whose guard band was written.
json contents(Buffers& buffers) {
  json result{{"tensors", json::object()}, {"outside", buffers.written_outside()}};
  for (std::size_t i = 0; i < buffers.specs().size(); ++i) {
    result["tensors"][buffers.specs()[i].name] =
        bytes_value(buffers.memory(i).data(), buffers.memory(i).bytes());
  }
  return result;
}

json trace_json(const simt::Trace& trace) {
  json findings = json::array();
  for (const simt::Finding& finding : trace.findings) {
    findings.push_back(FoundFault{fault_named(finding.kind), finding.message});
  }
  return {{"sites", trace.sites}, {"findings", findings}};
}

// Host code of a submission writes its own stack and what it has allocated. Anything else, such as
// the counts of the tracer, ends the process. What this program has allocated it does not read,
// either: the inputs are there. Only code of submissions is instrumented, so this also holds where
// it is called as a destructor, or to say what an exception is.
struct Allowed {
  bool runs = false;            // what is allocated now is the submission's
  std::uintptr_t stack = 0;     // where its stack begins, growing down
  char *begin, *next, *end;     // what it allocates
  std::uintptr_t heap = 0;      // of this program: from here to the break
  std::uintptr_t exception[2];  // the memory of the last one that it has thrown
};
Allowed allowed;

void check_host_access(std::uintptr_t address, std::size_t bytes, bool writes, void*) {
  constexpr std::size_t kStackBytes = 8 << 20;
  const std::uintptr_t end = address + bytes;
  const auto in = [&](const void* first, const void* last) {
    return address >= reinterpret_cast<std::uintptr_t>(first) &&
           end <= reinterpret_cast<std::uintptr_t>(last);
  };
  const bool above = end > allowed.stack && address < allowed.stack + kStackBytes;
  const bool on_stack = in(__builtin_frame_address(0), reinterpret_cast<void*>(allowed.stack));
  if (on_stack || in(allowed.begin, allowed.next)) return;
  if (address >= allowed.exception[0] && end <= allowed.exception[1]) return;
  const bool of_program = above || (end > allowed.heap && in(nullptr, sbrk(0)));
  if (!writes && !of_program) return;
  simt::observe_host_access = nullptr;
  simt::end_process(writes ? "a store to memory that is not its own"
                           : "a load from memory that is not its own");
}

void allow_own_memory() {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  allowed.begin = allowed.next = static_cast<char*>(memory);
  allowed.end = allowed.begin + kBytes;
  simt::observe_host_access = &check_host_access;
}

// Calls code of the submission.
template <class F>
__attribute__((noinline)) auto submitted_code(F&& call) {
  struct Running {
    Running() { allowed.runs = true; }
    ~Running() { allowed.runs = false; }
  };
  allowed.stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  std::optional<std::invoke_result_t<F>> result;
  {
    const Running running;
    result.emplace(call());
  }
  return std::move(*result);
}

// In the child: the submission's own code runs from here on.
json run_task(const json& task) {
  simt::set_model_capability(task.at("capability"));
  allow_own_memory();
  // What its code reads is allocated as its own.
  const auto submitted = submitted_code([] { return std::make_unique<Entry>(entry()); });
  const auto problem = submitted_code([&] {
    const Variant variant{task.at("pitch"), task.at("shift")};
    return submitted->make_problem(task.at("size").get<Size>(), variant);
  });
  set_schedule({task.at("copies"), task.at("blocks")}, task.at("order_seed"));
  json result{{"runs", json::array()}};
  const auto end = [&result](Fault fault, const std::string& reason) {
    result["check"] = CheckResult(fault, reason);
    return result;
  };
  const Support support = submitted_code([&] {
    const DeviceInfo device = device_info();
    return submitted->level.supports(*problem, device);
  });
  if (!support) return end(Fault::unsupported, "unsupported: " + support.reason);
  const std::vector<TensorSpec> tensors = submitted_code([&] {
    std::vector<TensorSpec> specs = problem->tensors();
    for (TensorSpec& spec : specs) spec.fill = nullptr;  // to copy it calls code of the submission
    return specs;
  });
  Buffers own({tensors.begin(), tensors.end()}, {task.at("pitch"), task.at("shift")});
  set_observer({.launch = [](const void*, const LaunchConfig* launched) {
    simt::open_device_memory(launched != nullptr);
    allowed.runs = launched == nullptr;
  }});
  simt::open_device_memory(false);
  CheckResult check;
  bool recording = false;
  try {
    std::function<void(Stream)> run;
    try {
      // Nothing has been drawn yet: a plan cannot hold results.
      run = submitted_code([&] {
        const DevicePointers pointers = own.pointers();
        return submitted->level.prepare(*problem, pointers);
      });
    } catch (const std::invalid_argument& rule) {
      return end(Fault::unsupported, std::string("unsupported: ") + rule.what());
    }
    if (task.at("traced")) {
      simt::start_trace();
      recording = true;
    }
    for (const json& inputs : task.at("runs")) {
      simt::open_device_memory(true);
      own.fill([&](std::size_t i) {
        const auto& bytes = inputs.at(own.specs()[i].name).get_binary();
        if (bytes.size() != own.specs()[i].bytes()) throw std::runtime_error("a wrong input");
        return bytes.data();
      });
      simt::open_device_memory(false);
      submitted_code([&] {
        run(Stream{});
        return true;
      });
      synchronize();
      simt::open_device_memory(true);
      result["runs"].push_back(contents(own));
      if (recording) result["trace"] = trace_json(simt::stop_trace());  // the first run's
      recording = false;
    }
  } catch (const std::exception& error) {
    check = {fault_of(error), error.what()};
    if (recording) result["trace"] = trace_json(simt::stop_trace());
  }
  simt::open_device_memory(true);
  set_observer({});
  return end(check.fault, check.reason);
}

// Runs a task in a child, which cannot reach the grader.
json answer_to(const json& task, const Pipes& pipes) {
  Isolation isolation;
  isolation.seconds = task.at("seconds");
  json result;
  CheckResult check;
  try {
    const Outcome outcome = run_isolated(
        isolation,
        [&] {
          close(pipes.in);
          close(pipes.out);
          return run_task(task);
        },
        result);
    check = {outcome.fault, outcome.reason};
  } catch (const std::exception& error) {
    check = {Fault::crash, error.what()};
  }
  return {{"check", check}, {"result", result}};
}

// No code of this program calls the operating system itself, but by the C library. So a call from
// its text is one that hides in a constant or between two instructions: the process ends.
void forbid_calls_from_own_text() {
  extern const char text_begins asm("__executable_start");
  extern const char text_ends asm("etext");
  const auto low = reinterpret_cast<std::uint64_t>(&text_begins);
  const auto high = reinterpret_cast<std::uint64_t>(&text_ends);
  if (low >> 32 != high >> 32) return;
  constexpr auto kAddress = static_cast<std::uint32_t>(offsetof(seccomp_data, instruction_pointer));
  constexpr auto load = [](std::uint32_t at) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, at};
  };
  sock_filter rules[] = {
      load(kAddress + 4),
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 4, static_cast<std::uint32_t>(low >> 32)},
      load(kAddress),
      {BPF_JMP | BPF_JGE | BPF_K, 0, 2, static_cast<std::uint32_t>(low)},
      {BPF_JMP | BPF_JGT | BPF_K, 1, 0, static_cast<std::uint32_t>(high)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  sock_fprog program{std::size(rules), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  }
}

}  // namespace
}  // namespace cookbook::grading

// Where calls from the wrong side end (ONE_SIDE in objects.py).
extern "C" [[noreturn]] void cookbook_grading_called_by_kernel(const char* name) {
  cookbook::simt::fail_at(__builtin_return_address(0),
                          "a kernel calls {}, which only host code may", name);
}
extern "C" [[noreturn]] void cookbook_grading_called_by_host(const char* name) {
  cookbook::simt::end_process(fmt::format("a call of {}, which only kernels may,", name));
}

// The memory of an exception that the submission throws, for __cxa_throw.
extern "C" void* __cxa_allocate_exception(std::size_t bytes) noexcept;
extern "C" void* cookbook_grading_allocate_exception(std::size_t bytes) {
  void* memory = __cxa_allocate_exception(bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  cookbook::grading::allowed.exception[0] = begin;
  cookbook::grading::allowed.exception[1] = begin + bytes;
  return memory;
}

// What host code of a submission allocates is never used again, and lies together.
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  auto& allowed = cookbook::grading::allowed;
  void* next = allowed.next;
  std::size_t left = static_cast<std::size_t>(allowed.end - allowed.next);
  if (allowed.runs && std::align(static_cast<std::size_t>(alignment), bytes, next, left)) {
    allowed.next = static_cast<char*>(next) + bytes;
    return next;
  }
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  const auto at_least = static_cast<std::size_t>(alignment);
  void* memory = at_least <= 16 ? std::malloc(wanted) : std::aligned_alloc(at_least, wanted);
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes) { return operator new (bytes, std::align_val_t{16}); }
void operator delete(void* memory) noexcept {
  const auto& allowed = cookbook::grading::allowed;
  if (memory < allowed.begin || memory >= allowed.end) std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

int main() {
  using namespace cookbook::grading;
  mallopt(M_MMAP_MAX, 0);  // all below the break
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  allowed.heap = reinterpret_cast<std::uintptr_t>(sbrk(0));
  forbid_calls_from_own_text();
  return serve(std::uint64_t{1} << 32, answer_to);
}
