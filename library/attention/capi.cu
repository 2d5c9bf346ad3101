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

namespace {

using namespace cookbook;
using namespace cookbook::attention;

/// Finds a level by its name, without the harness: the library links only the backend.
struct NamedLevel {
  std::string name;
  std::function<PlannedRun(const Problem&, const Buffers&)> prepare;
};

template <class L>
NamedLevel named() {
  return {L::text.name, prepare_level<L, Problem, Buffers>};
}

template <class... Levels>
std::vector<NamedLevel> named_levels() {
  return {named<Levels>()...};
}

const std::vector<NamedLevel>& all_levels() {
  static const auto levels =
      named_levels<Attention, Prefill, Decode, Unfused, Tiled, TensorCores, Wgmma, Specialised,
                   PingPong, Overlapped, Lazy, Persistent, CrossTile, SplitSoftmax, MaxOfBits,
                   LastWave, Multicast, BlockPerHead, Split, GqaPacked, OneLaunch, WideTile>();
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
  for (const NamedLevel& level : all_levels()) {
    if (level.name == level_name) return level.prepare(problem, {q, k, v, o, lse});
  }
  throw std::invalid_argument(std::string("no level is called ") + level_name);
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
  static const std::string names = [] {
    std::string list;
    for (const NamedLevel& level : all_levels()) list += level.name + "\n";
    return list;
  }();
  return names.c_str();
}

}  // extern "C"
