// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/cluster.hpp"

#include <array>
#include <cstring>
#include <string>

#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/cluster_async.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/state.hpp"

namespace cookbook {
namespace simt {
namespace {

// A block launched without a cluster is a cluster of its own, whatever else is in its group.
bool alone() { return current_thread->block->group->launch->cluster == 1; }

void arrive(void* pc, bool releases = true) {
  if (!alone()) cluster_barrier_arrive(pc, releases);
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

uint3 cluster_shape() { return current_thread->block->group->launch->cluster_shape; }

void store_async(void* pointer, const void* value, int bytes, uint64_t* bar, uint32_t rank) {
  constexpr const char* kWhat = "store_async_cluster";
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(90, kWhat, pc);
  if (alone()) {  // an illegal instruction on a GPU, even to the block's own memory
    fail_at(pc, "{}: the launch has clusters of one block; it needs two or more", kWhat);
  }
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<unsigned>(bytes) != 0) {
    fail_at(pc, "{}: the address is not aligned to its {} bytes", kWhat, bytes);
  }
  require_registers(value, kWhat, pc);
  void* const to = map_to_rank(pointer, rank, kWhat, pc);
  auto* const remote = static_cast<uint64_t*>(map_to_rank(bar, rank, kWhat, pc));
  Group& group = *current_thread->block->group;
  find_mbarrier(group, remote, kWhat, pc);
  Actor actor = 0;
  if (async_tracer != nullptr) {
    actor = async_tracer->async_begin();
    async_tracer->async_store(to, static_cast<unsigned>(bytes), pc, actor);
    mbarrier_tracer->mbarrier_use(remote, actor, false, pc);
  }
  std::array<char, 16> copy{};
  std::memcpy(copy.data(), value, static_cast<size_t>(bytes));
  const Block& from = *current_thread->block;
  defer([to, copy, bytes, remote, actor, pc, &from, &group] {
    Mbarrier& barrier = find_mbarrier(group, remote, kWhat, pc);
    std::memcpy(to, copy.data(), static_cast<size_t>(bytes));
    mbarrier_complete_bytes(barrier, static_cast<uint32_t>(bytes), actor, from, Signal::store_async,
                            pc);
  });
}

}  // namespace simt

using namespace simt;

uint32_t cluster_block_rank() { return current_thread->block->rank; }

uint32_t cluster_size() { return current_thread->block->group->launch->cluster; }

void cluster_arrive() { arrive(COOKBOOK_SIMT_PC); }

void cluster_arrive_relaxed() { arrive(COOKBOOK_SIMT_PC, false); }

void cluster_wait() { wait(COOKBOOK_SIMT_PC); }

void cluster_sync() {
  void* const pc = COOKBOOK_SIMT_PC;
  arrive(pc);
  wait(pc);
}

}  // namespace cookbook
