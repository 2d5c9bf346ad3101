// SPDX-License-Identifier: MIT
// The C interface; plots/contestants/libraries.py has the command that builds the library.
#include "library/attention/capi.hpp"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chapters/10_flash_attention/decode_level_0_block_per_head.cuh"
#include "chapters/10_flash_attention/level_0_unfused.cuh"
#include "chapters/10_flash_attention/level_3_wgmma.cuh"
#include "chapters/10_flash_attention/level_4_specialised.cuh"
#include "chapters/10_flash_attention/level_5_ping_pong.cuh"
#include "chapters/10_flash_attention/level_7_lazy_rescale.cuh"
#include "chapters/10_flash_attention/level_8_persistent.cuh"
#include "chapters/10_flash_attention/sidebar_multicast.cuh"
#include "common/harness/contract/c_interface.hpp"
#include "library/attention/attention.cuh"
#include "library/attention/backward.cuh"

namespace {

using namespace cookbook;
using namespace cookbook::attention;

/// Finds a level by its name, without the harness: the library links only the backend.
template <class ProblemT, class BuffersT>
struct NamedLevel {
  std::string name;
  std::function<PlannedRun(const ProblemT&, const BuffersT&)> prepare;
};

template <class ProblemT, class BuffersT, class... Levels>
std::vector<NamedLevel<ProblemT, BuffersT>> named_levels() {
  return {{Levels::text.name, prepare_level<Levels, ProblemT, BuffersT>}...};
}

template <class Named>
PlannedRun prepare_named(const std::vector<Named>& levels, const char* name, const auto& problem,
                         const auto& buffers) {
  for (const Named& level : levels) {
    if (level.name == name) return level.prepare(problem, buffers);
  }
  throw std::invalid_argument(std::string("no level is called ") + name);
}

template <class Named>
std::string names_of(const std::vector<Named>& levels) {
  std::string list;
  for (const Named& level : levels) list += level.name + "\n";
  return list;
}

const auto& all_levels() {
  static const auto levels =
      named_levels<Problem, Buffers, Attention, Prefill, Decode, Unfused, Tiled, TensorCores, Wgmma,
                   Specialised, PingPong, Overlapped, Lazy, Persistent, CrossTile, SplitSoftmax,
                   MaxOfBits, LastWave, Multicast, BlockPerHead, Split, GqaPacked, OneLaunch,
                   WideTile>();
  return levels;
}

PlannedRun prepare(const char* level_name, const cookbook_attention_problem& c, const void* q,
                   const void* k, const void* v, void* o, float* lse) {
  Problem problem = Problem::make({c.batch, c.heads_q, c.heads_kv, c.seq_q, c.seq_k, c.head_dim},
                                  {}, c.dtype == 1 ? DType::f16 : DType::bf16, c.causal != 0);
  for (const void* at : {q, k, v, static_cast<const void*>(o)}) {
    const auto elements = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) / 2 % 8);
    if (elements != 0) problem.misalign_elements = elements;
  }
  return prepare_named(all_levels(), level_name, problem, Buffers{q, k, v, o, lse});
}

const auto& backward_levels() {
  static const auto levels =
      named_levels<backward::Problem, backward::Buffers, backward::Backward,
                   backward::Deterministic, backward::Delayed, backward::InFlight,
                   backward::TensorCores, backward::Tiled>();
  return levels;
}

backward::Problem backward_problem(const cookbook_attention_problem& c) {
  if (c.dtype != 0) throw std::invalid_argument("the backward pass takes bf16 only");
  return backward::Problem::make({c.batch, c.heads_q, c.heads_kv, c.seq_q, c.seq_k, c.head_dim}, {},
                                 c.causal != 0);
}

PlannedRun prepare_backward(const char* level_name, const cookbook_attention_problem& c,
                            const cookbook_attention_gradients& t) {
  backward::Problem problem = backward_problem(c);
  for (const void* at : {t.q, t.k, t.v, t.o, t.d_o, static_cast<const void*>(t.dq),
                         static_cast<const void*>(t.dk), static_cast<const void*>(t.dv)}) {
    const auto elements = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) / 2 % 8);
    if (elements != 0) problem.forward.misalign_elements = elements;
  }
  const auto in = [](const void* at) { return static_cast<const bf16*>(at); };
  const auto out = [](void* at) { return static_cast<bf16*>(at); };
  const backward::Buffers buffers{in(t.q), in(t.k),   in(t.v),   in(t.o),   in(t.d_o),
                                  t.lse,   out(t.dq), out(t.dk), out(t.dv), t.d_lse};
  return prepare_named(backward_levels(), level_name, problem, buffers);
}

}  // namespace

extern "C" {

void* cookbook_attention_plan(const char* level, const cookbook_attention_problem* problem,
                              const void* q, const void* k, const void* v, void* o, float* lse) {
  return new_plan([&] { return prepare(level, *problem, q, k, v, o, lse); });
}

int cookbook_attention_run(void* plan, void* stream) { return run_plan(plan, stream); }

void cookbook_attention_destroy(void* plan) { delete_plan(plan); }

int cookbook_attention_forward(const char* level, const cookbook_attention_problem* problem,
                               const void* q, const void* k, const void* v, void* o, float* lse,
                               void* stream) {
  return guarded(1, [&] {
    const PlannedRun run = prepare(level, *problem, q, k, v, o, lse);
    run(as_stream(stream));
    synchronize(as_stream(stream));  // the plan's workspace is freed on return
    return 0;
  });
}

const char* cookbook_attention_error(void) { return last_error.c_str(); }

const char* cookbook_attention_levels(void) {
  static const std::string names = names_of(all_levels());
  return names.c_str();
}

void* cookbook_attention_backward_plan(const char* level, const cookbook_attention_problem* problem,
                                       const cookbook_attention_gradients* tensors) {
  return new_plan([&] { return prepare_backward(level, *problem, *tensors); });
}

long long cookbook_attention_backward_workspace(const cookbook_attention_problem* problem) {
  return guarded(-1LL, [&] {
    return static_cast<long long>(backward::PlanBase::workspace(backward_problem(*problem)));
  });
}

const char* cookbook_attention_backward_levels(void) {
  static const std::string names = names_of(backward_levels());
  return names.c_str();
}

}  // extern "C"
