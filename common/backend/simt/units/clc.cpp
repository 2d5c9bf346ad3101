// SPDX-License-Identifier: MIT
// A request takes the next cluster that no worker has started.
#include "common/backend/simt/units/clc.hpp"

#include <cstring>
#include <string>

#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/worker.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/state.hpp"

namespace cookbook::simt {
namespace {

constexpr const char* kTry = "clusterlaunchcontrol.try_cancel";
constexpr uint32_t kBytes = 16;  // of an answer

// An answer: this and the index of the cluster, or nothing else.
constexpr uint64_t kGranted = 0x434c'4300'0000'0001, kDeclined = 0x434c'4300'0000'0000;

void require_answer(uint64_t low, const char* what, void* pc) {
  require_capability(100, what, pc);
  if (low != kGranted && low != kDeclined) {
    fail_at(pc, "{}: the 16 bytes are no answer of {}", what, kTry);
  }
}

}  // namespace

void clc_try_cancel(void* response, uint64_t* bar, bool multicast) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(100, kTry, pc);
  if (multicast) require_sm_100a("clusterlaunchcontrol.try_cancel.multicast", pc);
  require_own_shared(response, kTry, pc);
  require_own_shared(bar, kTry, pc);
  if (reinterpret_cast<uintptr_t>(response) % kBytes != 0) {
    fail_at(pc, "{}: the address is not aligned to 16 bytes", kTry);
  }
  Group& group = *current_thread->block->group;
  if (group_units(group).clc_declined) {
    fail_at(pc, "{} after an earlier request was seen to have failed: undefined", kTry);
  }
  struct Target {
    char* response;
    uint64_t* bar;
  };
  std::vector<Target> targets;
  const uint32_t own = current_thread->block->rank;
  for (uint32_t rank = 0; rank < group.launch->cluster; ++rank) {
    if (!multicast && rank != own) continue;
    targets.push_back({static_cast<char*>(map_to_rank(response, rank, kTry, pc)),
                       static_cast<uint64_t*>(map_to_rank(bar, rank, kTry, pc))});
  }
  lane_acted(pc);
  Actor actor = 0;
  if (async_tracer != nullptr) actor = async_tracer->async_begin();
  for (const Target& target : targets) {
    find_mbarrier(group, target.bar, kTry, pc);
    if (async_tracer == nullptr) continue;
    async_tracer->async_bulk(target.response, kBytes, BulkUse::answer, pc, actor);
    mbarrier_tracer->mbarrier_use(target.bar, actor, true, pc);
  }
  const Block& from = *current_thread->block;
  defer([targets, actor, pc, &from, &group] {
    uint64_t granted = 0;
    const bool is_granted = current_worker->state->take_group(granted);
    const uint64_t answer[2] = {is_granted ? kGranted : kDeclined, granted};
    for (const Target& target : targets) {
      std::memcpy(target.response, answer, kBytes);
      mbarrier_complete_bytes(find_mbarrier(group, target.bar, kTry, pc), kBytes, actor, from,
                              Signal::bulk_copy, pc);
    }
  });
}

bool clc_is_canceled(uint64_t low, uint64_t) {
  require_answer(low, "clusterlaunchcontrol.query_cancel", COOKBOOK_SIMT_PC);
  if (low == kGranted) return true;
  group_units(*current_thread->block->group).clc_declined = true;
  return false;
}

uint3 clc_first_block(uint64_t low, uint64_t high) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_answer(low, "clusterlaunchcontrol.query_cancel", pc);
  if (low != kGranted) {
    fail("clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed: undefined",
         pc);
  }
  const Launch& launch = *current_thread->block->group->launch;
  return block_index_in(launch, high * launch.blocks_per_group);
}

}  // namespace cookbook::simt
