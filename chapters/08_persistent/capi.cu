// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "chapters/08_persistent/capi.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "chapters/08_persistent/level_6_any_shape.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::gemm;

thread_local std::string last_error;

using Run = std::function<void(Stream)>;

template <class L>
Run prepare_level(const Problem& problem, const Buffers& buffers) {
  if (const Support support = L::supports(problem, device_info()); !support) {
    throw std::invalid_argument(std::string(L::name) + ": " + support.reason);
  }
  auto plan = std::make_shared<typename L::Plan>(L::prepare(problem, buffers));
  return [plan](Stream stream) { L::run(*plan, stream); };
}

Run prepare(const std::string& level, const cookbook_gemm_problem& c, const void* a, const void* b,
            void* out) {
  Problem problem =
      Problem::make_layout({c.m, c.n, c.k}, {}, c.a_transposed != 0, c.b_transposed != 0);
  const auto pitch = [](long long given, std::int64_t cols) {
    if (given != 0 && given < cols) throw std::invalid_argument("a leading dimension is too small");
    return given == 0 ? cols : static_cast<std::int64_t>(given);
  };
  problem.lda = pitch(c.lda, problem.a_cols());
  problem.ldb = pitch(c.ldb, problem.b_cols());
  problem.ldc = pitch(c.ldc, problem.n);
  const Buffers buffers{static_cast<const bf16*>(a), static_cast<const bf16*>(b),
                        static_cast<bf16*>(out)};
  if (level == AnyShape::name) return prepare_level<AnyShape>(problem, buffers);
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

void* cookbook_gemm_plan(const char* level, const cookbook_gemm_problem* problem, const void* a,
                         const void* b, void* c) {
  return guarded(static_cast<void*>(nullptr),
                 [&]() -> void* { return new Run(prepare(level, *problem, a, b, c)); });
}

int cookbook_gemm_run(void* plan, void* stream) {
  return guarded(1, [&] {
    (*static_cast<Run*>(plan))(as_stream(stream));
    return 0;
  });
}

void cookbook_gemm_destroy(void* plan) { delete static_cast<Run*>(plan); }

const char* cookbook_gemm_error(void) { return last_error.c_str(); }

const char* cookbook_gemm_levels(void) {
  static const std::string names = std::string(AnyShape::name) + "\n";
  return names.c_str();
}

}  // extern "C"
