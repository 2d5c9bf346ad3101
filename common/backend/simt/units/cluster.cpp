// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/cluster.hpp"

#include "common/backend/simt/units/state.hpp"

namespace cookbook {
namespace simt {
namespace {

// A block launched without a cluster is a cluster of its own, whatever else is in its group.
bool alone() { return current_thread->block->group->launch->cluster == 1; }

void arrive(void* pc) {
  if (!alone()) cluster_barrier_arrive(pc);
}

void wait(void* pc) {
  if (alone()) {
    barrier_sync(0, 0, "cluster_wait", pc);
  } else {
    cluster_barrier_wait(pc);
  }
}

}  // namespace

void* map_shared(const void* pointer, uint32_t rank) {
  return map_to_rank(pointer, rank, "map_shared", COOKBOOK_SIMT_PC);
}

}  // namespace simt

using namespace simt;

uint32_t cluster_block_rank() { return current_thread->block->rank; }

uint32_t cluster_size() { return current_thread->block->group->launch->cluster; }

void cluster_arrive() { arrive(COOKBOOK_SIMT_PC); }

void cluster_wait() { wait(COOKBOOK_SIMT_PC); }

void cluster_sync() {
  void* const pc = COOKBOOK_SIMT_PC;
  arrive(pc);
  wait(pc);
}

}  // namespace cookbook
