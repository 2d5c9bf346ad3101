// SPDX-License-Identifier: MIT
/// @file
/// Marks for the option --timeline: what a warp does, and when (docs/profiling.md).
///
/// The device functions of this folder mark their own waits and the starts of asynchronous work, so
/// a kernel only marks what is computed in its own loops, and names its barriers. Every function
/// here is empty unless COOKBOOK_TIMELINE is defined, and the machine code is that of the kernel
/// without these lines. A mark stands alone on its line, as a statement that begins with
/// `timeline::`: hashes of sources leave such lines out.
#pragma once

#include <cstdint>

#include "common/backend/timeline.hpp"
#include "common/device/cuda.cuh"

namespace cookbook::timeline {

#if defined(COOKBOOK_SIMT) && !defined(COOKBOOK_TRACED)

inline constexpr bool kRecords = true;
/// Does nothing unless simt::start_timeline() was called.
void record(Kind kind, Edge edge, uint32_t object, uint32_t value);

#elif defined(COOKBOOK_TIMELINE) && defined(__CUDACC__)

inline constexpr bool kRecords = true;

static __constant__ Rings rings;  // one read per mark, also in blocks that record nothing

// Where the harness sets them: each source with kernels has its own.
static void set_rings(const Rings& to) { cudaMemcpyToSymbol(rings, &to, sizeof to); }
static const bool rings_are_known = register_rings(set_rings);

/// One lane of those that come here together adds an event to its warp's ring.
__device__ __forceinline__ void record(Kind kind, Edge edge, uint32_t object, uint32_t value) {
  const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (block >= rings.blocks || thread % 32 != static_cast<uint32_t>(__ffs(__activemask()) - 1))
    return;
  const uint32_t ring = block * rings.warps + thread / 32;
  const uint32_t count = rings.counts[ring]++;
  Event& event = rings.events[ring * rings.capacity + count % rings.capacity];
  uint64_t nanoseconds = 0;
  // Reading the global timer takes about a microsecond, and a few readings give the clock's rate.
  if ((count & (count - 1)) == 0 || count % 256 == 0)
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  event.nanoseconds = nanoseconds;
  event.clock = static_cast<uint64_t>(clock64());
  event.block = block;
  event.warp = static_cast<uint16_t>(thread / 32);
  event.kind = kind;
  event.edge = edge;
  event.object = object;
  event.value = value;
}

#else

inline constexpr bool kRecords = false;
__device__ __forceinline__ void record(Kind, Edge, uint32_t, uint32_t) {}

#endif

/// From here on the warp does `kind`, until end(kind).
__device__ __forceinline__ void begin(Kind kind, uint32_t object = 0, uint32_t value = 0) {
  record(kind, Edge::begin, object, value);
}
__device__ __forceinline__ void end(Kind kind, uint32_t object = 0, uint32_t value = 0) {
  record(kind, Edge::end, object, value);
}
/// Something asynchronous starts here.
__device__ __forceinline__ void moment(Kind kind, uint32_t object = 0, uint32_t value = 0) {
  record(kind, Edge::moment, object, value);
}

/// Names the barriers of a ring of stages. `letter`: what the stages hold, if there are several
/// rings. Called by the thread that initialises them.
template <int kStages>
__device__ __forceinline__ void name_ring(const uint64_t (&full)[kStages],
                                          const uint64_t (&empty)[kStages], char letter = 0) {
  if constexpr (kRecords) {
    for (int stage = 0; stage < kStages; ++stage) {
      const uint32_t value = static_cast<uint32_t>(stage + 256 * letter);
      moment(Kind::name_full, static_cast<uint32_t>(__cvta_generic_to_shared(&full[stage])), value);
      moment(Kind::name_empty, static_cast<uint32_t>(__cvta_generic_to_shared(&empty[stage])),
             value);
    }
  }
}

}  // namespace cookbook::timeline
