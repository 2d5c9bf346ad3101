// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "chapters/09_online_softmax/capi.hpp"

#include <stdexcept>
#include <string>

#include "chapters/09_online_softmax/level_11_staying_clusters.cuh"
#include "common/harness/c_interface.hpp"

namespace {

using namespace cookbook;
using namespace cookbook::softmax;

thread_local std::string last_error;

template <class T>
PlannedRun prepare(const std::string& level, const cookbook_softmax_problem& c, const void* in,
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
  using Last = StayingClusters<Softmax<T>>;
  if (level == Blocks::text.name) return prepare_level<Blocks>(problem, buffers);
  if (level == Last::text.name) return prepare_level<Last>(problem, buffers);
  throw std::invalid_argument("no level is called " + level);
}

}  // namespace

extern "C" {

void* cookbook_softmax_plan(const char* level, const cookbook_softmax_problem* problem,
                            const void* in, void* out) {
  return guarded(last_error, static_cast<void*>(nullptr), [&]() -> void* {
    if (problem->dtype == 0) return new PlannedRun(prepare<bf16>(level, *problem, in, out));
    if (problem->dtype == 2) return new PlannedRun(prepare<float>(level, *problem, in, out));
    throw std::invalid_argument("dtype must be 0 (bf16) or 2 (fp32)");
  });
}

int cookbook_softmax_run(void* plan, void* stream) {
  return guarded(last_error, 1, [&] {
    (*static_cast<PlannedRun*>(plan))(as_stream(stream));
    return 0;
  });
}

void cookbook_softmax_destroy(void* plan) { delete static_cast<PlannedRun*>(plan); }

const char* cookbook_softmax_error(void) { return last_error.c_str(); }

const char* cookbook_softmax_levels(void) {
  static const std::string names = std::string(OnChip<Softmax<float>>::text.name) + "\n" +
                                   StayingClusters<Softmax<float>>::text.name + "\n";
  return names.c_str();
}

}  // extern "C"
