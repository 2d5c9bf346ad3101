// SPDX-License-Identifier: MIT
// A copy reads global and writes shared memory at one moment between its issue and its wait: at the
// wait (late), at issue (early), or at one of the thread's cp.async instructions between (random).
#include "common/backend/simt/units/cp_async.hpp"

#include <cstring>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/state.hpp"

namespace cookbook {
namespace simt {
namespace {

void land(CpAsyncCopy& copy) {
  if (copy.landed) return;
  char data[16] = {};
  std::memcpy(data, copy.gmem, copy.valid_bytes);
  std::memcpy(copy.smem, data, copy.bytes);
  copy.landed = true;
}

void land_some(CpAsyncState& state) {
  if (async_schedule() != AsyncSchedule::random) return;
  for (CpAsyncCopy& copy : state.copies) {
    if (!copy.landed && happens_now()) land(copy);
  }
}

// The copies before number `end` have landed; `object` carries what they did to the thread that
// acquires it.
void retire(CpAsyncState& state, uint64_t end, const void* object) {
  while (state.first < end) {
    CpAsyncCopy& copy = state.copies.front();
    land(copy);
    if (sync_tracer != nullptr) sync_tracer->release(object, copy.actor);
    state.copies.pop_front();
    ++state.first;
  }
}

void require_aligned(const void* pointer, int bytes, const char* which, void* pc) {
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<unsigned>(bytes) == 0) return;
  fail_at(pc, "cp_async: the {} is not aligned to {} bytes", which, bytes);
}

}  // namespace

void cp_async(void* smem, const void* gmem, int bytes, int valid_bytes) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_own_shared(smem, "cp_async", pc);
  require_aligned(smem, bytes, "destination", pc);
  require_aligned(gmem, bytes, "source", pc);
  if (valid_bytes < 0 || valid_bytes > bytes) {
    fail_at(pc, "cp_async_zfill: 0 to {} valid bytes, got {}", bytes, valid_bytes);
  }
  Thread& thread = *current_thread;
  CpAsyncState& state = thread_units(thread).cp_async;
  CpAsyncCopy copy{static_cast<char*>(smem),
                   static_cast<const char*>(gmem),
                   static_cast<uint8_t>(bytes),
                   static_cast<uint8_t>(valid_bytes),
                   false,
                   0};
  if (async_tracer != nullptr) {
    copy.actor = async_tracer->async_begin();
    async_tracer->async_copy(smem, gmem, copy.bytes, copy.valid_bytes, pc, copy.actor);
  }
  // Before sm_80 it is an ordinary copy (common/device/cp_async.cuh).
  if (async_schedule() == AsyncSchedule::early || device_info().cc() < 80) land(copy);
  state.copies.push_back(copy);
  land_some(state);
}

void cp_async_wait(int pending_groups) {
  const MarkedWait marked(timeline::Kind::wait_copies, 0, static_cast<uint32_t>(pending_groups));
  Thread& thread = *current_thread;
  CpAsyncState& state = thread_units(thread).cp_async;
  land_some(state);
  bool acquire = false;
  while (state.groups.size() > static_cast<size_t>(pending_groups)) {
    retire(state, state.groups.front(), &state);
    state.groups.pop_front();
    acquire = true;
  }
  if (acquire && sync_tracer != nullptr) sync_tracer->acquire(&state, thread.actor);
}

void cp_async_thread_exit(Thread& thread) {
  CpAsyncState& state = thread_units(thread).cp_async;
  retire(state, state.end(), &state);
  state.groups.clear();
}

}  // namespace simt

using namespace simt;

void cp_async_commit() {
  CpAsyncState& state = thread_units(*current_thread).cp_async;
  mark(timeline::Kind::commit_copies, timeline::Edge::moment);
  state.groups.push_back(state.end());
  land_some(state);
}

void cp_async_mbarrier_arrive_noinc(uint64_t* bar) {
  void* const pc = COOKBOOK_SIMT_PC;
  Thread& thread = *current_thread;
  Group& group = *thread.block->group;
  require_capability(80, "cp_async_mbarrier_arrive_noinc", pc);
  require_own_shared(bar, "cp_async_mbarrier_arrive_noinc", pc);
  find_mbarrier(group, bar, "cp_async_mbarrier_arrive_noinc", pc);
  if (mbarrier_tracer != nullptr) mbarrier_tracer->mbarrier_use(bar, thread.actor, false, pc);
  const uint64_t end = thread_units(thread).cp_async.end();
  defer([&thread, &group, bar, end, pc] {
    Mbarrier& barrier = find_mbarrier(group, bar, "cp_async_mbarrier_arrive_noinc", pc);
    CpAsyncState& state = thread_units(thread).cp_async;
    // The thread may still wait for these copies, too, so they stay in its list.
    for (uint64_t i = state.first; i < end && i < state.end(); ++i) {
      CpAsyncCopy& copy = state.copies[i - state.first];
      land(copy);
      if (sync_tracer != nullptr) {
        mbarrier_release(barrier, copy.actor, *thread.block, Signal::block);
      }
    }
    mbarrier_complete_arrival(barrier, 1, pc);
  });
}

}  // namespace cookbook
