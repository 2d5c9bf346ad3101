// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "library/transpose/capi.hpp"

#include <stdexcept>
#include <string>

#include "common/harness/contract/c_interface.hpp"
#include "library/transpose/transpose.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::transpose;

PlannedRun prepare(const std::string& kernel, const cookbook_transpose_problem& c, const float* in,
                   float* out) {
  const auto pitch = [](long long given, long long least) {
    if (given != 0 && given < least) throw std::invalid_argument("a pitch is too small");
    return given == 0 ? least : given;
  };
  Problem problem = Problem::make({c.rows, c.cols}, {});
  problem.shape.in_pitch = pitch(c.in_pitch, c.cols);
  problem.shape.out_pitch = pitch(c.out_pitch, c.rows);
  const Level::Plan plan{problem, {in, out}};
  if (kernel == Transpose::text.name) return prepare_level<Transpose>(problem, plan.buffers);
  for (const Candidate& candidate : kCandidates) {
    if (kernel != candidate.name) continue;
    if (!supports(candidate, c.rows, c.cols))
      throw std::invalid_argument(kernel + ": more than 16 rows or columns");
    return [plan, start = start_of(candidate)](Stream stream) { start(plan, stream); };
  }
  throw std::invalid_argument("no kernel is called " + kernel);
}

}  // namespace

extern "C" {

void* cookbook_transpose_plan(const char* kernel, const cookbook_transpose_problem* problem,
                              const float* in, float* out) {
  return new_plan([&] { return prepare(kernel, *problem, in, out); });
}

int cookbook_transpose_run(void* plan, void* stream) { return run_plan(plan, stream); }

void cookbook_transpose_destroy(void* plan) { delete_plan(plan); }

const char* cookbook_transpose_error(void) { return last_error.c_str(); }

const char* cookbook_transpose_levels(void) {
  static const std::string names = [] {
    std::string all = std::string(Transpose::text.name) + "\n";
    for (const Candidate& candidate : kCandidates) all += std::string(candidate.name) + "\n";
    return all;
  }();
  return names.c_str();
}

}  // extern "C"
