// SPDX-License-Identifier: MIT
// Level 3: one pass. A block publishes the sum of its tile, looks back at what the tiles before it
// have published until it finds a prefix, and publishes its own prefix.
#pragma once

#include "problem.hpp"
#include "tile_scan.cuh"

namespace cookbook::scan {

/// What a tile publishes: a value, and whether it is the sum of the tile or of all tiles up to it.
/// Both are one word of 64 bits, so no fence is needed between them.
enum class TileState : unsigned { nothing, aggregate, prefix };

__device__ __forceinline__ unsigned long long published(TileState state, float value) {
  return static_cast<unsigned long long>(static_cast<unsigned>(state)) << 32 |
         static_cast<unsigned>(__float_as_int(value));
}
__device__ __forceinline__ TileState state_of(unsigned long long word) {
  return static_cast<TileState>(word >> 32);
}
__device__ __forceinline__ float value_of(unsigned long long word) {
  return __int_as_float(static_cast<int>(word & 0xffffffffu));
}

/// The sum of all tiles before `tile`. One warp; the lanes look at 32 tiles at a time, the nearest
/// first, and stop at the first prefix.
__device__ __forceinline__ float look_back(const unsigned long long* words, std::int64_t tile) {
  float sum = 0;
  for (std::int64_t nearest = tile - 1;; nearest -= kWarpSize) {
    const std::int64_t mine = nearest - lane_idx();
    unsigned long long word = published(TileState::prefix, 0);  // before the first tile
    if (mine >= 0) {
      while (state_of(word = load_acquire(&words[mine])) == TileState::nothing) {
        spin_pause();  // [spin]
      }
    }
    __syncwarp();
    const unsigned prefixes = __ballot_sync(kFullWarp, state_of(word) == TileState::prefix);
    const int last = prefixes == 0 ? kWarpSize : __ffs(static_cast<int>(prefixes)) - 1;
    sum = warp_sum(lane_idx() <= last ? value_of(word) : 0.0f) + sum;
    if (prefixes != 0) return sum;
  }
}

/// Nothing is published yet, and tile 0 is the next. `ticket` is words[tiles].
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    forget_tiles(unsigned long long* words, std::int64_t tiles) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i <= tiles) words[i] = 0;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    look_back_scan(const float* __restrict__ in, float* __restrict__ out, unsigned long long* words,
                   std::int64_t tiles, std::int64_t n) {
  __shared__ float totals[C::kWarps];
  __shared__ unsigned long long ticket;
  __shared__ float shared_before;
  // Not blockIdx.x: a block may wait only for blocks that have started.
  if (threadIdx.x == 0) ticket = atomicAdd(&words[tiles], 1ull);
  __syncthreads();
  const std::int64_t tile = static_cast<std::int64_t>(ticket);
  float values[C::kPerThread];
  load_tile<C>(in, tile * C::kTile, n, values);
  const float sum = scan_tile<C>(values, totals);
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
  store_tile<C>(out, tile * C::kTile, n, values, shared_before);
}

struct LookBack : Level {
  using Config = TileConfig;
  // How many aggregates a block adds depends on when the others publish their prefixes.
  static constexpr bool same_every_run = false;
  static constexpr LevelText text{
      .name = "look_back",
      .changed = "one pass: blocks get the sum before their tile from each other",
      .expect = "the input is read once, the result written once: as fast as a copy",
      .cost = "blocks wait for blocks; the last bits of the result differ from run to run",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory words{};  // of every tile, and the ticket
  };

  static Claims claims(const Problem& p) {
    const double n = static_cast<double>(p.n);
    return {global_loads("in").bytes(4 * n), global_loads("in").coalesced(),
            global_stores("out").bytes(4 * n), global_stores("out").coalesced()};
  }

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const std::int64_t tiles = ceil_div(problem.n, std::int64_t{Config::kTile});
    return {problem, buffers, workspace<unsigned long long>(tiles + 1, "words")};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{Config::kTile});
    auto* words = plan.words.as<unsigned long long>();
    launch(forget_tiles<Config>, {blocks_for(tiles + 1, Config::kThreads), dim3(Config::kThreads)},
           stream, words, tiles);
    launch(look_back_scan<Config>, {blocks_for(n, Config::kTile), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, words, tiles, n);
  }
};

}  // namespace cookbook::scan
