// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "library/rows/capi.hpp"

#include <stdexcept>
#include <string>

#include "common/harness/contract/c_interface.hpp"
#include "library/rows/rows.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::softmax;

template <class Client>
PlannedRun prepare(const std::string& kernel, const cookbook_rows_problem& c,
                   typename Client::Level::Buffers buffers) {
  const auto pitch = [&](long long given) {
    if (given != 0 && given < c.cols) throw std::invalid_argument("a pitch is too small");
    return given == 0 ? c.cols : given;
  };
  auto problem = Client::Level::Problem::make({c.rows, c.cols}, {});
  problem.shape.in_pitch = pitch(c.in_pitch);
  problem.shape.out_pitch = pitch(c.out_pitch);
  if (kernel == Rows<Client>::text.name) return prepare_level<Rows<Client>>(problem, buffers);
  for (const RowCandidate& candidate : kRowCandidates) {
    if (kernel != candidate.name) continue;
    RowLaunch<Client> plan{{problem, buffers}};
    plan_supported(plan, candidate);
    return [plan](Stream stream) { plan.start(plan, stream); };
  }
  throw std::invalid_argument("no kernel is called " + kernel);
}

template <class T>
PlannedRun prepare(const std::string& kernel, const cookbook_rows_problem& c, const void* in,
                   const void* weight, void* out) {
  const auto* from = static_cast<const T*>(in);
  auto* to = static_cast<T*>(out);
  if (weight == nullptr) return prepare<Softmax<T>>(kernel, c, {from, to});
  return prepare<RmsNorm<T>>(kernel, c, {from, static_cast<const T*>(weight), to});
}

}  // namespace

extern "C" {

void* cookbook_rows_plan(const char* kernel, const cookbook_rows_problem* problem, const void* in,
                         const void* weight, void* out) {
  return new_plan([&] {
    switch (problem->dtype) {
      case 0: return prepare<bf16>(kernel, *problem, in, weight, out);
      case 2: return prepare<float>(kernel, *problem, in, weight, out);
      default: throw std::invalid_argument("dtype must be 0 (bf16) or 2 (fp32)");
    }
  });
}

int cookbook_rows_run(void* plan, void* stream) { return run_plan(plan, stream); }

void cookbook_rows_destroy(void* plan) { delete_plan(plan); }

const char* cookbook_rows_error(void) { return last_error.c_str(); }

const char* cookbook_rows_levels(void) {
  static const std::string names = [] {
    std::string all = "rows\n";
    for (const RowCandidate& candidate : kRowCandidates) all += std::string(candidate.name) + "\n";
    return all;
  }();
  return names.c_str();
}

}  // extern "C"
