// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "chapters/09_online_softmax/capi.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "chapters/09_online_softmax/level_8_in_shared.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::softmax;

thread_local std::string last_error;

using Run = std::function<void(Stream)>;

template <class L, class T>
Run prepare_level(const Problem<T>& problem, const Buffers<T>& buffers) {
  if (const Support support = L::supports(problem, device_info()); !support) {
    throw std::invalid_argument(std::string(L::name) + ": " + support.reason);
  }
  auto plan = std::make_shared<typename L::Plan>(L::prepare(problem, buffers));
  return [plan](Stream stream) { L::run(*plan, stream); };
}

template <class T>
Run prepare(const std::string& level, const cookbook_softmax_problem& c, const void* in,
            void* out) {
  auto problem = Problem<T>::make({c.rows, c.cols}, {});
  const auto pitch = [&](long long given) {
    if (given != 0 && given < c.cols) throw std::invalid_argument("a pitch is too small");
    return given == 0 ? c.cols : given;
  };
  problem.shape.in_pitch = pitch(c.in_pitch);
  problem.shape.out_pitch = pitch(c.out_pitch);
  const Buffers<T> buffers{static_cast<const T*>(in), static_cast<T*>(out)};
  using Blocks = OnChip<Softmax<T>>;
  using Shared = InShared<Softmax<T>>;
  if (level == Blocks::name) return prepare_level<Blocks>(problem, buffers);
  if (level == Shared::name) return prepare_level<Shared>(problem, buffers);
  throw std::invalid_argument("no level is called " + level);
}

Stream as_stream([[maybe_unused]] void* handle) {
  Stream stream;
#if defined(COOKBOOK_CUDA)
  stream.handle = static_cast<cudaStream_t>(handle);
#endif
  return stream;
}

/// Runs `f`; an exception becomes the error message and `failed`.
template <class R, class F>
R guarded(R failed, F&& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

}  // namespace

extern "C" {

void* cookbook_softmax_plan(const char* level, const cookbook_softmax_problem* problem,
                            const void* in, void* out) {
  return guarded(static_cast<void*>(nullptr), [&]() -> void* {
    if (problem->dtype == 0) return new Run(prepare<bf16>(level, *problem, in, out));
    if (problem->dtype == 2) return new Run(prepare<float>(level, *problem, in, out));
    throw std::invalid_argument("dtype must be 0 (bf16) or 2 (fp32)");
  });
}

int cookbook_softmax_run(void* plan, void* stream) {
  return guarded(1, [&] {
    (*static_cast<Run*>(plan))(as_stream(stream));
    return 0;
  });
}

void cookbook_softmax_destroy(void* plan) { delete static_cast<Run*>(plan); }

const char* cookbook_softmax_error(void) { return last_error.c_str(); }

const char* cookbook_softmax_levels(void) {
  static const std::string names =
      std::string(OnChip<Softmax<float>>::name) + "\n" + Cluster<Softmax<float>>::name + "\n";
  return names.c_str();
}

}  // extern "C"
