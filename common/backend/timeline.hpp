// SPDX-License-Identifier: MIT
/// @file
/// What a warp records for `./run N --timeline` (docs/profiling.md): plain data, the same on both
/// backends. common/device/timeline.cuh has the marks that kernels and device functions contain.
#pragma once

#include <cstdint>

namespace cookbook::timeline {

/// What a mark is about. `object` and `value` of the Event depend on it.
enum class Kind : std::uint8_t {
  // Spans of the warp itself: a begin and an end.
  wait_barrier,  ///< mbarrier_wait; object: address of the barrier in shared memory
  wait_turn,     ///< named_barrier_sync; object: id of the barrier
  wait_wgmma,    ///< value: batches that may stay in flight
  wait_copies,   ///< cp_async_wait; value: groups that may stay in flight
  wait_stores,   ///< tma_store_wait; value: groups that may stay in flight
  copy,          ///< through registers
  multiply,      ///< FMAs or mma.sync
  softmax,
  store,
  // One moment: something asynchronous starts. It ends when a wait shows that it has ended.
  expect_bytes,   ///< a copy by TMA starts; object: the barrier that it completes, value: bytes
  commit_wgmma,   ///< a batch of wgmma
  commit_copies,  ///< a group of cp.async
  commit_stores,  ///< a group of TMA stores
  // Of tensor memory, one moment, on the SIMT backend only and on no track. object: the first
  // column, value: their number.
  tensor_alloc,
  tensor_mma,  ///< a tcgen05.mma starts; D's columns
  tensor_load,
  tensor_free,
  // What barriers are called.
  name_full,   ///< object: barrier that says that a stage is full, value: stage + 256 * letter
  name_empty,  ///< the same for one that says that a stage is empty
};

enum class Edge : std::uint8_t { begin, end, moment };

/// One mark by one warp.
struct Event {
  std::uint64_t nanoseconds;  ///< %globaltimer, in some marks; 0 in others and on the SIMT backend
  /// clock64(). On the SIMT backend the number of marks before this one in the same cluster: an
  /// order, no time.
  std::uint64_t clock;
  std::uint32_t block;  ///< linear index in the grid
  std::uint16_t warp;   ///< in the block
  Kind kind;
  Edge edge;
  std::uint32_t object, value;
};

/// Where a GPU's marks go, in device memory: a ring of events per warp of the recorded blocks.
struct Rings {
  Event* events;           ///< (block, warp, capacity)
  std::uint32_t* counts;   ///< (block, warp): marks ever made
  std::uint32_t blocks;    ///< the first blocks of the grid are recorded; 0: none
  std::uint32_t warps;     ///< rings per block
  std::uint32_t capacity;  ///< events per ring: the last ones are kept
};

/// Programs that were compiled with COOKBOOK_TIMELINE for a GPU: each source with kernels registers
/// the function that sets its copy of the rings. Returns true.
bool register_rings(void (*set)(const Rings&));
/// Sets all copies. False if this program records nothing.
bool set_all_rings(const Rings& rings);

}  // namespace cookbook::timeline
