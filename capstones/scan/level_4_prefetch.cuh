// SPDX-License-Identifier: MIT
// Level 4: a block stays, and loads its next tiles while it looks back.
#pragma once

#include <algorithm>

#include "common/device/cp_async.cuh"
#include "level_3_look_back.cuh"

namespace cookbook::scan {

struct PrefetchConfig : TileConfig {
  static constexpr int kStages = 2;       // tiles of a block that are on their way
  static constexpr int kBlocksPerSm = 5;  // 33 KB of shared memory each
};

/// Starts to load this thread's elements of `tile`, zeros from element n on. Each thread reads only
/// what it copied itself, so no barrier is needed: the copies are registers that nobody waits for.
template <class C>
__device__ __forceinline__ void start_tile(const float* __restrict__ in, std::int64_t tile,
                                           std::int64_t n, float (&stage)[C::kTile]) {
#pragma unroll
  for (int k = 0; k < C::kPerThread; ++k) {
    const int at = first_in_tile<C>() + k * kWarpSize;
    const std::int64_t i = tile * C::kTile + at;
    if (i < n) {
      cp_async<4>(&stage[at], &in[i]);  // [load]
    } else {
      stage[at] = 0;
    }
  }
  cp_async_commit();
}

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocksPerSm)
    prefetch_scan(const float* __restrict__ in, float* __restrict__ out, unsigned long long* words,
                  std::int64_t tiles, std::int64_t n) {
  __shared__ float stages[C::kStages][C::kTile];
  __shared__ float totals[C::kWarps];
  __shared__ unsigned long long tickets[C::kStages];
  __shared__ unsigned long long next_ticket;
  __shared__ float shared_before;
  unsigned long long* counter = &words[tiles];
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) tickets[s] = atomicAdd(counter, 1ull);
  }
  __syncthreads();
  std::int64_t ahead[C::kStages];  // the tiles on their way, the next one first
#pragma unroll
  for (int s = 0; s < C::kStages; ++s) {
    ahead[s] = static_cast<std::int64_t>(tickets[s]);
    start_tile<C>(in, ahead[s], n, stages[s]);
  }
  // Thread 0 asks for a ticket one tile before the block needs it.
  unsigned long long upcoming = threadIdx.x == 0 ? atomicAdd(counter, 1ull) : 0;
  for (int stage = 0; ahead[0] < tiles; stage = stage + 1 < C::kStages ? stage + 1 : 0) {
    const std::int64_t tile = ahead[0];
    cp_async_wait<C::kStages - 1>();
    float values[C::kPerThread];
#pragma unroll
    for (int k = 0; k < C::kPerThread; ++k) {
      values[k] = stages[stage][first_in_tile<C>() + k * kWarpSize];
    }
    if (threadIdx.x == 0) {
      next_ticket = upcoming;
      upcoming = atomicAdd(counter, 1ull);
    }
    const float sum = scan_tile<C>(values, totals);  // its barrier also shows the ticket
    if (threadIdx.x == 0 && tile > 0) {
      store_release(&words[tile], published(TileState::aggregate, sum));
    }
#pragma unroll
    for (int s = 0; s + 1 < C::kStages; ++s) ahead[s] = ahead[s + 1];
    ahead[C::kStages - 1] = static_cast<std::int64_t>(next_ticket);
    start_tile<C>(in, ahead[C::kStages - 1], n, stages[stage]);
    if (warp_idx() == 0) {
      __syncwarp();
      const float before = tile > 0 ? look_back(words, tile) : 0.0f;
      if (lane_idx() == 0) {
        store_release(&words[tile], published(TileState::prefix, before + sum));
        shared_before = before;
      }
    }
    __syncthreads();
    store_tile<C>(out, tile * C::kTile, n, values, shared_before);
  }
}

struct Prefetch : LookBack {
  using Config = PrefetchConfig;
  static constexpr LevelText text{
      .name = "prefetch",
      .changed = "blocks stay and take tile after tile; two tiles are on their way meanwhile",
      .expect =
          "look_back waits for memory, then for other blocks, one after the other: 32 KB per block "
          "in flight all the time hide both; 0.9 of a copy's speed",
      .cost = "33 KB of shared memory per block, 5 blocks per SM",
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    Claim bytes = Accesses("global", "async_load", "in").bytes(4 * n);
    Claim coalesced = Accesses("global", "async_load", "in").coalesced();
    return {bytes,
            coalesced,
            global_stores("out").bytes(4 * n),
            global_stores("out").coalesced(),
            shared_loads().conflict_free(),
            faster_than_previous(1.2),
            against_library("cub::DeviceScan", 0.95)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{Config::kTile});
    const auto resident = std::int64_t{device_info().sm_count} * Config::kBlocksPerSm;
    auto* words = plan.words.as<unsigned long long>();
    launch(forget_tiles<Config>, {blocks_for(tiles + 1, Config::kThreads), dim3(Config::kThreads)},
           stream, words, tiles);
    launch(prefetch_scan<Config>,
           {dim3(static_cast<unsigned>(std::min(tiles, resident))), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, words, tiles, n);
  }
};

}  // namespace cookbook::scan
