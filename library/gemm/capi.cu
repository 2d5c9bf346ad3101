// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "library/gemm/capi.hpp"

#include <stdexcept>
#include <string>

#include "common/harness/contract/c_interface.hpp"
#include "library/gemm/any_shape.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::gemm;

PlannedRun prepare(const std::string& level, const cookbook_gemm_problem& c, const void* a,
                   const void* b, void* out) {
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
  if (level == AnyShape::text.name) return prepare_level<AnyShape>(problem, buffers);
  throw std::invalid_argument("no level is called " + level);
}

}  // namespace

extern "C" {

void* cookbook_gemm_plan(const char* level, const cookbook_gemm_problem* problem, const void* a,
                         const void* b, void* c) {
  return new_plan([&] { return prepare(level, *problem, a, b, c); });
}

int cookbook_gemm_run(void* plan, void* stream) { return run_plan(plan, stream); }

void cookbook_gemm_destroy(void* plan) { delete_plan(plan); }

const char* cookbook_gemm_error(void) { return last_error.c_str(); }

const char* cookbook_gemm_levels(void) {
  static const std::string names = std::string(AnyShape::text.name) + "\n";
  return names.c_str();
}

}  // extern "C"
