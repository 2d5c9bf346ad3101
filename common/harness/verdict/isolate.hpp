// SPDX-License-Identifier: MIT
// Work that runs kernels in a child process: one that crashes or hangs ends alone.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/backend/fault.hpp"

namespace cookbook {

/// How kernels are run.
struct Isolation {
  bool in_process = false;     ///< in this process, without a time limit: for a debugger
  std::uint64_t seconds = 60;  ///< without progress, after which a kernel hangs; 0: no limit
};

/// How isolated work ended: by itself, with a crash, or hung.
struct Outcome {
  Fault fault = Fault::none;
  std::string reason;  ///< one line, unless none: what happened, in which kernel, at which line
};

/// Calls `work` in a child process and stores what it returns in `result`. Its exceptions are
/// rethrown here as std::runtime_error. On the CUDA backend always in this process, since no child
/// of it could use the GPU.
Outcome run_isolated(const Isolation& isolation, const std::function<nlohmann::json()>& work,
                     nlohmann::json& result);

}  // namespace cookbook
