// SPDX-License-Identifier: MIT
// Exercise 1: this look-back is right as long as blocks start in the order of their numbers, which
// no GPU promises. In another order it hangs. Change how a block chooses its tile.
#pragma once

#include "../level_3_look_back.cuh"

namespace cookbook::scan {

/// The tile of this block, in every thread: your part. words[tiles] is a counter, 0 at first.
__device__ __forceinline__ std::int64_t tile_of_block(unsigned long long* /*words*/,
                                                      std::int64_t /*tiles*/) {
  return blockIdx.x;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    ticket_scan(const float* __restrict__ in, float* __restrict__ out, unsigned long long* words,
                std::int64_t tiles, std::int64_t n) {
  __shared__ float totals[C::kWarps];
  __shared__ float shared_before;
  const std::int64_t tile = tile_of_block(words, tiles);
  float values[C::kPerThread];
  load_tile<C>(in, tile * C::kTile, n, values);
  const float sum = scan_tile<C>(values, totals);
  if (warp_idx() == 0) {
    if (lane_idx() == 0 && tile > 0) {
      store_release(&words[tile], published(TileState::aggregate, sum));
    }
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

struct Ticket : LookBack {
  static constexpr LevelText text{
      .name = "ticket",
      .changed = "your own choice of a block's tile",
      .expect = "right in whatever order blocks start",
      .cost = "one atomic per block",
  };

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{Config::kTile});
    auto* words = plan.words.as<unsigned long long>();
    launch(forget_tiles<Config>, {blocks_for(tiles + 1, Config::kThreads), dim3(Config::kThreads)},
           stream, words, tiles);
    launch(ticket_scan<Config>, {blocks_for(n, Config::kTile), dim3(Config::kThreads)}, stream,
           plan.buffers.in, plan.buffers.out, words, tiles, n);
  }
};

}  // namespace cookbook::scan
