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

/// What went wrong in this thread's last call that failed. Each library has its own.
static thread_local std::string last_error;

/// Runs `f`; an exception becomes the message in last_error, and the result is `failed`.
template <class R, class F>
R guarded(R failed, F&& f) {
  try {
    return f();
  } catch (const std::exception& exception) {
    last_error = exception.what();
    return failed;
  }
}

/// A plan of what `prepare` returns, for run_plan and delete_plan; null after an exception.
template <class F>
void* new_plan(F&& prepare) {
  return guarded(static_cast<void*>(nullptr), [&]() -> void* { return new PlannedRun(prepare()); });
}

/// 0, or 1 after an exception.
[[maybe_unused]] static int run_plan(void* plan, void* stream) {
  return guarded(1, [&] {
    (*static_cast<PlannedRun*>(plan))(as_stream(stream));
    return 0;
  });
}

inline void delete_plan(void* plan) { delete static_cast<PlannedRun*>(plan); }

}  // namespace cookbook
