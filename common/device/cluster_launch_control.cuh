// SPDX-License-Identifier: MIT
/// @file
/// Cluster launch control, sm_100a: a running cluster takes over the work of one that has not
/// started (PTX ISA, "clusterlaunchcontrol"). The grid has a block for every tile; a cluster that
/// has finished its own cancels another one and computes that one's tile.
#pragma once

#include "common/device/arch.cuh"
#include "common/device/cuda.cuh"

#if !defined(__CUDACC__)
#include "common/backend/simt/units/clc.hpp"
#endif

namespace cookbook {

/// The answer to a request, written by the async proxy.
struct alignas(16) CanceledCluster {
  uint64_t low, high;
};

#if !defined(__CUDACC__)

__forceinline__ void try_cancel_cluster(CanceledCluster* answer, uint64_t* bar) {
  simt::clc_try_cancel(answer, bar, true);
}
__forceinline__ bool is_canceled(const CanceledCluster& answer) {
  return simt::clc_is_canceled(answer.low, answer.high);
}
__forceinline__ int first_block_x(const CanceledCluster& answer) {
  return static_cast<int>(simt::clc_first_block(answer.low, answer.high).x);
}

#else

/// Asks for a cluster that has not started. The answer goes to the offset of `answer` in every
/// block of this cluster, and signals 16 bytes to each block's barrier at `bar`'s offset. One
/// thread of the cluster calls, and none after an answer in which nothing was canceled.
__device__ __forceinline__ void try_cancel_cluster(CanceledCluster* answer, uint64_t* bar) {
  COOKBOOK_ASM_SM100A(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes."
      "multicast::cluster::all.b128 [%0], [%1];" ::"r"(shared_address(answer)),
      "r"(shared_address(bar))
      : "memory");
}

/// Whether the answer names a cluster.
__device__ __forceinline__ bool is_canceled(const CanceledCluster& answer) {
  uint32_t canceled = 0;
  COOKBOOK_ASM_SM100A(
      "{\n.reg .b128 answer;\n.reg .pred p;\n"
      "mov.b128 answer, {%1, %2};\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(canceled)
      : "l"(answer.low), "l"(answer.high));
  return canceled != 0;
}

/// blockIdx.x of the first block of that cluster; undefined where there is none.
__device__ __forceinline__ int first_block_x(const CanceledCluster& answer) {
  int x = 0;
  COOKBOOK_ASM_SM100A(
      "{\n.reg .b128 answer;\n"
      "mov.b128 answer, {%1, %2};\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, answer;\n}"
      : "=r"(x)
      : "l"(answer.low), "l"(answer.high));
  return x;
}

#endif

}  // namespace cookbook
