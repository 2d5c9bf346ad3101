// SPDX-License-Identifier: MIT
// Level 3: the same without padding: row r stores column c at position c XOR r.
#pragma once

#include "chapters/03_bank_conflicts/problem.hpp"

namespace cookbook::transpose {

template <class C>
__global__ void __launch_bounds__(C::kTile* C::kThreadsY)
    swizzled_transpose(const float* __restrict__ in, float* __restrict__ out, Shape shape) {
  const auto [row0, col0] = tile_origin(blockIdx.x, shape, C::kTile, C::kTile);

  __shared__ float tile[C::kTile][C::kTile];  // (row, col ^ row); word (r, c) in bank c XOR r

#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + y, col = col0 + threadIdx.x;
    if (row < shape.rows && col < shape.cols) {
      // [quote swizzled]
      tile[y][threadIdx.x ^ y] = in[row * shape.in_pitch + col];
      // [end quote]
    }
  }
  __syncthreads();  // the tile is complete before any thread reads it
#pragma unroll
  for (int j = 0; j < C::kTile; j += C::kThreadsY) {
    const int y = threadIdx.y + j;
    const std::int64_t row = row0 + threadIdx.x, col = col0 + y;
    if (row < shape.rows && col < shape.cols) {
      // [quote read_back]
      out[col * shape.out_pitch + row] = tile[threadIdx.x][y ^ threadIdx.x];
      // [end quote]
    }
  }
}

struct Swizzled : Level {
  using Config = SquareConfig;
  static constexpr LevelText text{
      .name = "swizzled",
      .changed = "tile[r][c ^ r] instead of a padded row",
      .expect =
          "the same wavefronts in less space, rows 16-byte aligned; slightly slower because of its "
          "addresses",
      .cost = "an XOR per address, where padding has constant offsets",
  };

  static Claims claims(const Problem&) {
    return {global_loads("in").coalesced(),
            global_stores("out").coalesced(),
            shared_stores().conflict_free(),
            shared_loads().conflict_free(),
            shared_loads().wavefronts_per_request(1),
            at_least_previous(0.88, "the XOR saves space, but its addresses delay the loads")};
  }

  static void run(const Plan& plan, Stream stream) {
    launch_squares(swizzled_transpose<Config>, plan, stream);
  }
};

}  // namespace cookbook::transpose
