// SPDX-License-Identifier: MIT
/// @file
/// Barriers in shared memory that count arrivals and bytes (PTX ISA, "Parallel Synchronization and
/// Communication Instructions: mbarrier").
///
/// A barrier is 8 bytes of shared memory. A phase is complete when its pending arrivals and its
/// pending bytes are both zero; the next phase begins at once. Phases are distinguished by parity:
/// the first has parity 0. `mbarrier_wait(bar, p)` returns once the phase with parity p is
/// complete. On a new barrier wait(bar, 1) returns at once, as a producer needs it for an empty
/// stage.
///
/// Initialising, arriving and waiting need sm_80; bytes, counts and clusters sm_90.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/mbarrier.hpp"
#else
#include "common/device/timeline.cuh"

namespace cookbook {

/// Initialises `bar` for phases of `arrivals` arrivals (1 .. 2^20 - 1). Called by one thread.
/// Others may use the barrier after fence_mbarrier_init() and a block (or cluster) barrier.
__device__ __forceinline__ void mbarrier_init(uint64_t* bar, uint32_t arrivals) {
  COOKBOOK_ASM_SM80("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals)
                    : "memory");
}

/// Invalidates `bar`; its bytes may then be reused (PTX ISA, "mbarrier.inval").
__device__ __forceinline__ void mbarrier_invalidate(uint64_t* bar) {
  COOKBOOK_ASM_SM80("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}

/// Makes earlier mbarrier_init calls of this thread visible to the cluster and to TMA (PTX ISA,
/// "membar/fence", `fence.mbarrier_init`).
__device__ __forceinline__ void fence_mbarrier_init() {
  COOKBOOK_ASM_SM90("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// One arrival; releases this thread's earlier writes to the threads that wait.
__device__ __forceinline__ void mbarrier_arrive(uint64_t* bar) {
  COOKBOOK_ASM_SM80(
      "{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(shared_address(bar))
      : "memory");
}

/// `count` arrivals at once.
__device__ __forceinline__ void mbarrier_arrive(uint64_t* bar, uint32_t count) {
  COOKBOOK_ASM_SM90("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
                    "r"(count)
                    : "memory");
}

/// Adds `bytes` to the pending bytes of the current phase, then arrives once (PTX ISA,
/// "mbarrier.arrive.expect_tx"). A phase expects at most 2^20 - 1 bytes.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* bar, uint32_t bytes) {
  timeline::moment(timeline::Kind::expect_bytes, shared_address(bar), bytes);
  COOKBOOK_ASM_SM90(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
      "r"(bytes)
      : "memory");
}

/// Adds `bytes` to the pending bytes of the current phase without arriving (PTX ISA,
/// "mbarrier.expect_tx").
__device__ __forceinline__ void mbarrier_expect_tx(uint64_t* bar, uint32_t bytes) {
  timeline::moment(timeline::Kind::expect_bytes, shared_address(bar), bytes);
  COOKBOOK_ASM_SM90(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)),
      "r"(bytes)
      : "memory");
}

/// One arrival at the barrier at the same offset in block `rank` of the cluster.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint64_t* bar, uint32_t rank) {
  COOKBOOK_ASM_SM90(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(bar)),
      "r"(rank)
      : "memory");
}

/// As mbarrier_arrive_cluster, but releases nothing beyond this block (PTX's default,
/// `.release.cta`): to release a stage that was only read. A release at cluster scope is a full
/// memory barrier; see the SASS.
__device__ __forceinline__ void mbarrier_arrive_cluster_relaxed(uint64_t* bar, uint32_t rank) {
  COOKBOOK_ASM_SM90(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(bar)),
      "r"(rank)
      : "memory");
}

/// True if the phase with parity `parity` is complete. May suspend the thread for a limited time
/// (PTX ISA, "mbarrier.test_wait / try_wait").
__device__ __forceinline__ bool mbarrier_try_wait(uint64_t* bar, uint32_t parity) {
  uint32_t complete = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(complete)
      : "r"(shared_address(bar)), "r"(parity)
      : "memory");
#else
  COOKBOOK_ASM_SM80(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(complete)
      : "r"(shared_address(bar)), "r"(parity)
      : "memory");
#endif
  return complete != 0;
}

/// Returns once the phase with parity `parity` is complete; acquires what threads of the block
/// released to it.
__device__ __forceinline__ void mbarrier_wait(uint64_t* bar, uint32_t parity) {
  timeline::begin(timeline::Kind::wait_barrier, shared_address(bar));
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\n"
      "WAIT_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra DONE_%=;\n"
      "bra WAIT_%=;\n"
      "DONE_%=:\n}" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
#else
  while (!mbarrier_try_wait(bar, parity)) {
  }
#endif
  timeline::end(timeline::Kind::wait_barrier, shared_address(bar));
}

/// As mbarrier_wait, and also acquires what threads of the whole cluster released with
/// mbarrier_arrive_cluster. Needed if the data is in distributed shared memory.
__device__ __forceinline__ void mbarrier_wait_cluster(uint64_t* bar, uint32_t parity) {
  timeline::begin(timeline::Kind::wait_barrier, shared_address(bar));
  COOKBOOK_ASM_SM90(
      "{\n.reg .pred p;\n"
      "WAIT_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@p bra DONE_%=;\n"
      "bra WAIT_%=;\n"
      "DONE_%=:\n}" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
  timeline::end(timeline::Kind::wait_barrier, shared_address(bar));
}

}  // namespace cookbook

#endif
