// SPDX-License-Identifier: MIT
// Traces of launches and what they report.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/trace.hpp"

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
  return trace_of([&] { launch(kernel, config, {}, std::forward<A>(arguments)...); });
}

/// "kind: message" of every finding, one a line.
inline std::string findings_of(const simt::Trace& trace) {
  std::string text;
  for (const simt::Finding& finding : trace.findings) {
    text += finding.kind + ": " + finding.message + "\n";
  }
  return text;
}

#define EXPECT_NO_FINDINGS(trace) EXPECT_EQ(::cookbook::findings_of(trace), "")

}  // namespace cookbook
