// SPDX-License-Identifier: MIT
// Cluster launch control of sm_100 on the SIMT backend (PTX ISA, "clusterlaunchcontrol.try_cancel",
// "clusterlaunchcontrol.query_cancel").
#pragma once

#include <cstdint>

#include "common/device/cuda.cuh"

namespace cookbook::simt {

/// Asks for a cluster that has not started, in place of which the caller then works. The answer, 16
/// bytes, goes to `response` (16-byte aligned) in the own block's shared memory through the async
/// proxy, and signals 16 bytes to `bar`. Called by one thread. `multicast`: to both offsets in
/// every block of the cluster.
void clc_try_cancel(void* response, uint64_t* bar, bool multicast);
/// Whether the answer, its 16 bytes as two words, names a cluster.
bool clc_is_canceled(uint64_t low, uint64_t high);
/// The blockIdx of the first block of that cluster; fails where there is none, as the PTX ISA
/// leaves undefined what it is then.
uint3 clc_first_block(uint64_t low, uint64_t high);

}  // namespace cookbook::simt
