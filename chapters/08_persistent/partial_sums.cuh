// SPDX-License-Identifier: MIT
/// @file
/// Stream-K: sums of part of a tile, handed from the blocks that have them to the one that stores
/// the tile. Warp by warp and always in the same order, so that the result never varies.
#pragma once

#include "chapters/08_persistent/work.cuh"
#include "common/device/sync.cuh"
#include "common/device/vector.cuh"

namespace cookbook::gemm {

/// Workspace for one partial tile a block. `flags` are zero between launches.
struct PartialSums {
  float* sums = nullptr;  // (block, warp, accumulator / 4, lane) of float4
  int* flags = nullptr;   // (block, warp): 1 while sums wait to be fetched
};

/// Puts this warp's accumulators down and says so. slot: block * warps a block + warp.
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void give_sums(const float (&acc)[kMmaM][kAccumulators],
                                          const PartialSums& partial, int slot) {
  constexpr int kPacks = kAccumulators / 4;
  float4* to = reinterpret_cast<float4*>(partial.sums) +
               std::int64_t{slot} * (kMmaM * kPacks * kWarpSize) + lane_idx();
#pragma unroll
  for (int i = 0; i < kMmaM * kPacks; ++i) {
    const float* d = &acc[i / kPacks][i % kPacks * 4];
    to[i * kWarpSize] = make_float4(d[0], d[1], d[2], d[3]);
  }
  __syncwarp();  // all lanes have written before lane 0 releases
  if (lane_idx() == 0) store_release(&partial.flags[slot], 1);
}

/// Waits for the same warp's sums of another block and adds them.
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void take_sums(float (&acc)[kMmaM][kAccumulators],
                                          const PartialSums& partial, int slot) {
  constexpr int kPacks = kAccumulators / 4;
  if (lane_idx() == 0) {
    spin_wait_until_equal(&partial.flags[slot], 1);
    partial.flags[slot] = 0;  // for the next launch; nobody else looks
  }
  __syncwarp();
  const float4* from = reinterpret_cast<const float4*>(partial.sums) +
                       std::int64_t{slot} * (kMmaM * kPacks * kWarpSize) + lane_idx();
#pragma unroll
  for (int i = 0; i < kMmaM * kPacks; ++i) {
    const float4 sums = __ldcg(&from[i * kWarpSize]);
    float* d = &acc[i / kPacks][i % kPacks * 4];
    d[0] += sums.x, d[1] += sums.y, d[2] += sums.z, d[3] += sums.w;
  }
}

/// The sums of a segment that is not a whole tile: given away, or completed with the others'. True
/// if this warp now has the tile's sums and stores them. A tile is completed by whoever has its
/// last k-block. block_of(c): this block's counterpart in cluster c.
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
