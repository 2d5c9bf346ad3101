// SPDX-License-Identifier: MIT
// Level 1: the same arithmetic; the lanes of a warp now run along a row.
#pragma once

#include "problem.hpp"

namespace cookbook::mine {

struct CoalescedConfig {
  static constexpr int kTile = 32;  // a block computes kTile x kTile elements, one per thread
};

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kTile)
    coalesced(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const unsigned tiles_across = tiles(shape.cols, C::kTile);
  const std::int64_t row = std::int64_t{blockIdx.x / tiles_across} * C::kTile + threadIdx.y;
  const std::int64_t col = std::int64_t{blockIdx.x % tiles_across} * C::kTile + threadIdx.x;
  if (row >= shape.rows || col >= shape.cols) return;
  const float* at = in + row * shape.in_pitch + col;  // stride between lanes: 4 bytes
  float sum = *at;                                    // [centre]
  if (row > 0) sum += at[-shape.in_pitch];
  if (row + 1 < shape.rows) sum += at[shape.in_pitch];
  if (col > 0) sum += at[-1];
  if (col + 1 < shape.cols) sum += at[1];
  out[row * shape.out_pitch + col] = sum;  // [store]
}

struct Coalesced : Level {
  using Config = CoalescedConfig;
  static constexpr LevelText text{
      .name = "coalesced",
      .changed = "threadIdx.x runs along a row, no longer down a column",
      .expect = "4 sectors per access instead of 32: an eighth of the traffic between SM and L2",
      .cost = "nothing: two indices are swapped",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").on("centre").sectors_per_request(4),
            global_stores("out").coalesced(), faster_than_previous(1.5)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& shape = plan.problem.shape;
    launch(coalesced<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kTile)},
           stream, plan.buffers.in, plan.buffers.out, shape);
  }
};

}  // namespace cookbook::mine
