// SPDX-License-Identifier: MIT
/// @file
/// Stream-K: partial sums of a tile go from the blocks that computed them to the block that stores
/// the tile. They are added warp by warp and always in the same order, so the result never varies.
#pragma once

#include "chapters/08_persistent/work.cuh"
#include "common/device/sync.cuh"
#include "common/device/vector.cuh"

namespace cookbook::gemm {

/// Workspace for one partial tile per block. `flags` are zero between launches.
struct PartialSums {
  float* sums = nullptr;  // (block, warp, accumulator / 4, lane) of float4
  int* flags = nullptr;   // (block, warp): 1 while sums are ready to be fetched
};

/// Writes this warp's accumulators to the workspace and sets its flag. warp: block * (warps
/// per block) + the index in its block.
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void give_sums(const float (&acc)[kMmaM][kAccumulators],
                                          const PartialSums& partial, int warp) {
  constexpr int kPacks = kAccumulators / 4;
  float4* to = reinterpret_cast<float4*>(partial.sums) +
               std::int64_t{warp} * (kMmaM * kPacks * kWarpSize) + lane_idx();
#pragma unroll
  for (int i = 0; i < kMmaM * kPacks; ++i) {
    const float* d = &acc[i / kPacks][i % kPacks * 4];
    to[i * kWarpSize] = make_float4(d[0], d[1], d[2], d[3]);
  }
  __syncwarp();  // all lanes have written before lane 0 releases
  if (lane_idx() == 0) store_release(&partial.flags[warp], 1);
}

/// Waits for the partial sums of the same warp of another block and adds them.
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void take_sums(float (&acc)[kMmaM][kAccumulators],
                                          const PartialSums& partial, int warp) {
  constexpr int kPacks = kAccumulators / 4;
  if (lane_idx() == 0) {
    spin_wait_until_equal(&partial.flags[warp], 1);
    partial.flags[warp] = 0;  // reset for the next launch; no other warp reads it
  }
  __syncwarp();
  const float4* from = reinterpret_cast<const float4*>(partial.sums) +
                       std::int64_t{warp} * (kMmaM * kPacks * kWarpSize) + lane_idx();
#pragma unroll
  for (int i = 0; i < kMmaM * kPacks; ++i) {
    const float4 sums = __ldcg(&from[i * kWarpSize]);
    float* d = &acc[i / kPacks][i % kPacks * 4];
    d[0] += sums.x, d[1] += sums.y, d[2] += sums.z, d[3] += sums.w;
  }
}

/// Handles the accumulators of a segment that is not a whole tile: writes them to the workspace, or
/// completes them with those of other clusters. Returns true if this warp now has the tile's final
/// accumulators and must store them. The cluster with the tile's last k-block completes it.
/// block_of(c): this block's counterpart in cluster c.
template <int kWarps, int kMmaM, int kAccumulators, class BlockOf>
__device__ __forceinline__ bool complete_tile(float (&acc)[kMmaM][kAccumulators],
                                              const PartialSums& partial, const Work& work,
                                              const Segment& s, int cluster, int warp,
                                              BlockOf block_of) {
  if (s.k_end < work.k_blocks) {
    give_sums(acc, partial, block_of(cluster) * kWarps + warp);
    return false;
  }
  if (s.k_begin > 0) {
    for (int c = s.tile * work.k_blocks / work.share; c < cluster; ++c) {
      take_sums(acc, partial, block_of(c) * kWarps + warp);
    }
  }
  return true;
}

}  // namespace cookbook::gemm
