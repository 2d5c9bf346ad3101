// SPDX-License-Identifier: MIT
// Traces of launches and what they report.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/backend/simt/runtime/trace.hpp"
#include "tests/kernel_runs.hpp"

namespace cookbook {

/// The trace of `run`. The error of a kernel that must end in one is left in `error`.
inline simt::Trace trace_of(const std::function<void()>& run, std::string* error = nullptr) {
  simt::start_trace();
  try {
    run();
  } catch (const simt::KernelError& failure) {
    if (error == nullptr) ADD_FAILURE() << failure.what();
    if (error != nullptr) *error = failure.what();
  }
  return simt::stop_trace();
}

/// The trace of one launch.
template <class... P, class... A>
simt::Trace trace_launch(void (*kernel)(P...), const LaunchConfig& config, A&&... arguments) {
  return trace_of([&] { run_kernel(kernel, config, std::forward<A>(arguments)...); });
}

/// "kind: message" of every finding, one a line.
inline std::string findings_of(const simt::Trace& trace) {
  std::string text;
  for (const simt::Finding& finding : trace.findings) {
    text += finding.kind + ": " + finding.message + "\n";
  }
  return text;
}

/// A finding of this kind whose message has all these parts, in this order.
inline testing::AssertionResult has_finding(const simt::Trace& trace, const std::string& kind,
                                            const std::vector<std::string>& parts = {}) {
  for (const simt::Finding& finding : trace.findings) {
    size_t at = finding.kind == kind ? 0 : std::string::npos;
    for (const std::string& part : parts) {
      if (at != std::string::npos) at = finding.message.find(part, at);
      if (at != std::string::npos) at += part.size();
    }
    if (at != std::string::npos) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "the findings are:\n" << findings_of(trace);
}

#define EXPECT_FINDING(trace, ...) EXPECT_TRUE(::cookbook::has_finding(trace, __VA_ARGS__))
#define EXPECT_NO_FINDINGS(trace) EXPECT_EQ(::cookbook::findings_of(trace), "")

}  // namespace cookbook
