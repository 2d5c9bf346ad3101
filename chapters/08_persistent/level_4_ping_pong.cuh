// SPDX-License-Identifier: MIT
// Level 4: each consumer warpgroup has its own tile; one multiplies while the other stores.
#pragma once

#include "chapters/08_persistent/level_3_hidden_epilogue.cuh"

namespace cookbook::gemm {

namespace ping_pong {

/// Consumer warpgroup `group` computes the block's tiles group, group + 2, ... Its wgmma begin when
/// the other warpgroup has issued those of the tile before.
struct Turns {
  // [quote ping_pong]
  static __device__ __forceinline__ bool is_mine(int turn, int group) { return turn % 2 == group; }
  static __device__ __forceinline__ void wait(int turn, int group) {
    if (turn > 0) named_barrier_sync(1 + group, 256);  // after the other warpgroup's wgmma
  }
  static __device__ __forceinline__ void pass(bool more, int group) {
    if (more) named_barrier_arrive(2 - group, 256);  // the other warpgroup's turn
  }
  // [end quote]
};

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : hidden_epilogue::Config<kA, kB> {
  static constexpr int kBlockN = 192;  // 128 x 192 accumulators in 128 threads
  static constexpr int kStages = 5;
  static constexpr int kStoreBuffers = 1;
  static constexpr int kTileConsumers = 1;  // a warpgroup computes a whole tile
  using Turns = ping_pong::Turns;
};

}  // namespace ping_pong

struct PingPong : persistent_static::LevelOn<ping_pong::Config> {
  static constexpr LevelText text{
      .name = "ping_pong",
      .changed = "one tile per warpgroup, in turns: the tensor cores never wait for an epilogue",
      .expect =
          "as level 3 or better: the whole epilogue is hidden, but tiles of 128 x 192 load more "
          "per multiplication",
      .cost = "192 accumulators per thread",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)),
            at_least_previous(
                0.95,
                "128 x 192 tiles give 38 multiplications per byte loaded, 128 x 256 give 43: "
                "where L2 or power binds, that costs what the epilogue saves")};
  }
};

}  // namespace cookbook::gemm
