// SPDX-License-Identifier: MIT
// Level 4: 16 bytes per lane and instruction. Each lane adds its four neighbouring elements in
// registers, so that a warp scans 128 elements with the shuffles that 32 took.
#pragma once

#include "common/device/vector.cuh"
#include "level_3_look_back.cuh"

namespace cookbook::scan {

struct VectorisedConfig : TileConfig {
  static constexpr int kPack = 4;                   // neighbouring elements of a lane
  static constexpr int kRun = kPack * kWarpSize;    // neighbouring elements of a warp
  static constexpr int kRuns = kPerThread / kPack;  // of each warp
  static_assert(kPerThread % kPack == 0, "whole packs");
};

/// Whether 16 bytes can be moved at once, from and to the first element on.
inline bool is_aligned(const Buffers& at) {
  return (reinterpret_cast<std::uintptr_t>(at.in) | reinterpret_cast<std::uintptr_t>(at.out)) %
             sizeof(floatx4) ==
         0;
}

/// Index in the tile of this thread's first pack; the others follow at strides of kRun.
template <class C>
__device__ __forceinline__ int first_pack_in_tile() {
  return warp_idx() * C::kPerWarp + lane_idx() * C::kPack;
}

/// Loads a tile that begins at element `begin`; zeros from element n on.
template <class C, bool kAligned>
__device__ __forceinline__ void load_packs(const float* __restrict__ in, std::int64_t begin,
                                           std::int64_t n, floatx4 (&packs)[C::kRuns]) {
  const std::int64_t first = begin + first_pack_in_tile<C>();
#pragma unroll
  for (int k = 0; k < C::kRuns; ++k) {
    const std::int64_t i = first + k * C::kRun;
    if (kAligned && i + C::kPack <= n) {
      packs[k] = load_vector<floatx4>(&in[i]);  // [load]
    } else {
#pragma unroll
      for (int j = 0; j < C::kPack; ++j) packs[k][j] = i + j < n ? in[i + j] : 0.0f;
    }
  }
}

/// As scan_tile(), of packs.
template <class C>
__device__ __forceinline__ float scan_packs(floatx4 (&packs)[C::kRuns], float* totals) {
  float carry = 0;
#pragma unroll
  for (int k = 0; k < C::kRuns; ++k) {
#pragma unroll
    for (int j = 1; j < C::kPack; ++j) packs[k][j] = packs[k][j - 1] + packs[k][j];
    const float own = packs[k][C::kPack - 1];
    const float scanned = warp_inclusive_sum(own);
    const float total = __shfl_sync(kFullWarp, scanned, kWarpSize - 1);
    float before = __shfl_up_sync(kFullWarp, scanned, 1);
    before = lane_idx() == 0 ? carry : carry + before;
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) packs[k][j] = before + packs[k][j];
    carry += total;
  }
  if (lane_idx() == 0) totals[warp_idx()] = carry;
  __syncthreads();
  float before = 0, sum = 0;
#pragma unroll
  for (int w = 0; w < C::kWarps; ++w) {
    if (w == warp_idx()) before = sum;
    sum += totals[w];
  }
#pragma unroll
  for (int k = 0; k < C::kRuns; ++k) {
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) packs[k][j] = before + packs[k][j];
  }
  return sum;
}

/// Stores a scanned tile, with `before` added to every element.
template <class C, bool kAligned>
__device__ __forceinline__ void store_packs(float* __restrict__ out, std::int64_t begin,
                                            std::int64_t n, const floatx4 (&packs)[C::kRuns],
                                            float before) {
  const std::int64_t first = begin + first_pack_in_tile<C>();
#pragma unroll
  for (int k = 0; k < C::kRuns; ++k) {
    const std::int64_t i = first + k * C::kRun;
    floatx4 pack;
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) pack[j] = before + packs[k][j];
    if (kAligned && i + C::kPack <= n) {
      store_vector(&out[i], pack);  // [store]
    } else {
#pragma unroll
      for (int j = 0; j < C::kPack; ++j) {
        if (i + j < n) out[i + j] = pack[j];
      }
    }
  }
}

/// As look_back_scan(), of packs. kAligned: is_aligned() of the buffers.
template <class C, bool kAligned>
__global__ void __launch_bounds__(C::kThreads)
    vectorised_scan(const float* __restrict__ in, float* __restrict__ out,
                    unsigned long long* words, std::int64_t tiles, std::int64_t n) {
  __shared__ float totals[C::kWarps];
  __shared__ unsigned long long ticket;
  __shared__ float shared_before;
  if (threadIdx.x == 0) ticket = atomicAdd(&words[tiles], 1ull);
  __syncthreads();
  const std::int64_t tile = static_cast<std::int64_t>(ticket);
  floatx4 packs[C::kRuns];
  load_packs<C, kAligned>(in, tile * C::kTile, n, packs);
  const float sum = scan_packs<C>(packs, totals);
  if (warp_idx() == 0) {
    if (lane_idx() == 0 && tile > 0)
      store_release(&words[tile], published(TileState::aggregate, sum));
    __syncwarp();
    const float before = tile > 0 ? look_back(words, tile) : 0.0f;
    if (lane_idx() == 0) {
      store_release(&words[tile], published(TileState::prefix, before + sum));
      shared_before = before;
    }
  }
  __syncthreads();
  store_packs<C, kAligned>(out, tile * C::kTile, n, packs, shared_before);
}

struct Vectorised : LookBack {
  using Config = VectorisedConfig;
  static constexpr LevelText text{
      .name = "vectorised",
      .changed = "16 bytes per lane and instruction: a lane adds four neighbours in registers",
      .expect =
          "a quarter of the requests and shuffles. A block is done sooner, so it also waits less "
          "for others",
      .cost = "buffers that do not begin on 16-byte boundaries are moved 4 bytes at a time",
  };

  /// `n` elements in whole packs take one request per 128.
  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("in").bytes(4 * n), global_loads("in").requests(n / Config::kRun),
            global_loads("in").coalesced(), global_stores("out").requests(n / Config::kRun),
            global_stores("out").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{Config::kTile});
    auto* words = plan.words.as<unsigned long long>();
    launch(forget_tiles<Config>, {blocks_for(tiles + 1, Config::kThreads), dim3(Config::kThreads)},
           stream, words, tiles);
    launch(
        is_aligned(plan.buffers) ? vectorised_scan<Config, true> : vectorised_scan<Config, false>,
        {blocks_for(n, Config::kTile), dim3(Config::kThreads)}, stream, plan.buffers.in,
        plan.buffers.out, words, tiles, n);
  }
};

}  // namespace cookbook::scan
