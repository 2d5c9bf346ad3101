// SPDX-License-Identifier: MIT
// The process of a submission, which runs in a sandbox: it reads tasks from standard input, runs
// the submission's kernels and answers on standard output with the bytes of every tensor and with
// what the tracer counted. It has no reference, no claim, and no say in the verdict.
//
// Each task is run by a child process. The submission's code runs in children only: what it does
// to its process ends with the task.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

#include "common/backend/backend.hpp"
#include "common/backend/observe.hpp"
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

// In the child: the submission's own code runs from here on.
json run_task(const json& task) {
  const Entry submitted = entry();
  const Variant variant{task.at("pitch"), task.at("shift")};
  const auto problem = submitted.make_problem(task.at("size").get<Size>(), variant);
  set_schedule({task.at("copies"), task.at("blocks")}, task.at("order_seed"));
  json result{{"runs", json::array()}};
  const auto end = [&result](Fault fault, const std::string& reason) {
    result["check"] = CheckResult(fault, reason);
    return result;
  };
  if (const Support support = submitted.level.supports(*problem, device_info()); !support) {
    return end(Fault::unsupported, "unsupported: " + support.reason);
  }
  Buffers own(*problem, variant);
  set_observer({.launch = [](const void*, const LaunchConfig* launched) {
    simt::open_device_memory(launched != nullptr);
  }});
  simt::open_device_memory(false);
  CheckResult check;
  bool recording = false;
  try {
    std::function<void(Stream)> run;
    try {
      // Nothing has been drawn yet: a plan cannot hold results.
      run = submitted.level.prepare(*problem, own.pointers());
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
      run(Stream{});
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

// Where a kernel's call of a function of the host ends (HOST_ONLY in objects.py).
extern "C" [[noreturn]] void cookbook_grading_called_by_kernel(const char* name) {
  cookbook::simt::fail_at(__builtin_return_address(0),
                          "a kernel calls {}, which only host code may", name);
}

int main() {
  using namespace cookbook::grading;
  forbid_calls_from_own_text();
  return serve(std::uint64_t{1} << 32, answer_to);
}
