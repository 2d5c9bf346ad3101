// SPDX-License-Identifier: MIT
// mbarrier on the SIMT backend; what the functions do is documented in common/device/mbarrier.cuh.
#pragma once

#include <cstdint>

namespace cookbook {
namespace simt {

// Of the phase that is not complete yet, as the state that an arrival returns.
uint32_t mbarrier_parity(const uint64_t* bar);
// Arrives, and expects bytes, at a barrier in any block of the cluster.
void mbarrier_arrive_expect_tx_at(uint64_t* bar, uint32_t bytes, bool at_cluster_scope);

}  // namespace simt

void mbarrier_init(uint64_t* bar, uint32_t arrivals);
void mbarrier_invalidate(uint64_t* bar);
void mbarrier_arrive(uint64_t* bar);
void mbarrier_arrive(uint64_t* bar, uint32_t count);
void mbarrier_arrive_expect_tx(uint64_t* bar, uint32_t bytes);
void mbarrier_expect_tx(uint64_t* bar, uint32_t bytes);
void mbarrier_arrive_cluster(uint64_t* bar, uint32_t rank);
void mbarrier_arrive_cluster_relaxed(uint64_t* bar, uint32_t rank);
bool mbarrier_try_wait(uint64_t* bar, uint32_t parity);
void mbarrier_wait(uint64_t* bar, uint32_t parity);
void mbarrier_wait_cluster(uint64_t* bar, uint32_t parity);
void fence_mbarrier_init();

}  // namespace cookbook
