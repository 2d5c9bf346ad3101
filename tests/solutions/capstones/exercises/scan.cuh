// SPDX-License-Identifier: MIT
// Solution: a block takes the next tile when it starts.
#pragma once

#include "capstones/scan/level_3_look_back.cuh"

namespace cookbook::scan {

struct TicketConfig : TileConfig {
  static __device__ __forceinline__ void pass_on() { __syncthreads(); }
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    ticket_scan(const float* __restrict__ in, float* __restrict__ out, unsigned long long* words,
                std::int64_t tiles, std::int64_t n) {
  __shared__ float totals[C::kWarps];
  __shared__ unsigned long long ticket;
  __shared__ float shared_before;
  if (threadIdx.x == 0) ticket = atomicAdd(&words[tiles], 1ull);
  C::pass_on();
  const std::int64_t tile = static_cast<std::int64_t>(ticket);
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

template <class C>
struct TicketLevel : LookBack {
  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const std::int64_t tiles = ceil_div(n, std::int64_t{C::kTile});
    auto* words = plan.words.as<unsigned long long>();
    launch(forget_tiles<C>, {blocks_for(tiles + 1, C::kThreads), dim3(C::kThreads)}, stream, words,
           tiles);
    launch(ticket_scan<C>, {blocks_for(n, C::kTile), dim3(C::kThreads)}, stream, plan.buffers.in,
           plan.buffers.out, words, tiles, n);
  }
};

struct Ticket : TicketLevel<TicketConfig> {
  static constexpr LevelText text{.name = "ticket", .changed = "a ticket"};
};

namespace wrong {

/// The other warps read the ticket before it is there.
struct EarlyConfig : TileConfig {
  static __device__ __forceinline__ void pass_on() { __syncwarp(); }
};

struct Ticket : TicketLevel<EarlyConfig> {
  static constexpr LevelText text{.name = "ticket", .changed = "a ticket, and no barrier"};
};

}  // namespace wrong
}  // namespace cookbook::scan
