// SPDX-License-Identifier: MIT
/// @file
/// Shared by the C interfaces of chapters (capi.cu). Header-only: such a library links the backend
/// alone.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "common/backend/backend.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

/// What a plan is to its caller: it launches on a stream.
using PlannedRun = std::function<void(Stream)>;

/// Prepares level L; throws std::invalid_argument with the reason if it does not support `problem`.
template <class L, class Problem, class Buffers>
PlannedRun prepare_level(const Problem& problem, const Buffers& buffers) {
  if (const Support support = L::supports(problem, device_info()); !support) {
    throw std::invalid_argument(std::string(L::text.name) + ": " + support.reason);
  }
  using Plan = decltype(L::prepare(problem, buffers));
  auto plan = std::make_shared<Plan>(L::prepare(problem, buffers));
  return [plan](Stream stream) { L::run(*plan, stream); };
}

/// `handle`: a cudaStream_t, or anything on the SIMT backend.
inline Stream as_stream([[maybe_unused]] void* handle) {
  Stream stream;
#if defined(COOKBOOK_CUDA)
  stream.handle = static_cast<cudaStream_t>(handle);
#endif
  return stream;
}

/// Runs `f`; an exception becomes the message in `error`, and the result is `failed`.
template <class R, class F>
R guarded(std::string& error, R failed, F&& f) {
  try {
    return f();
  } catch (const std::exception& exception) {
    error = exception.what();
    return failed;
  }
}

}  // namespace cookbook
