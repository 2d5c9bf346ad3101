// SPDX-License-Identifier: MIT
// Exercise 6.1, a hole: level 3, but you write the descriptor of B's tile. The numbers below would
// be right if B were stored N x K (Major::k). B is stored K x N. What lies 1,024 bytes further on,
// what lies one panel further on, and where do the next sixteen k begin?
#pragma once

#include "chapters/06_tma/level_3_swizzle_128.cuh"

namespace cookbook::gemm {

namespace exercise_descriptor {

struct Config : wgmma_swizzled::Config {};

/// B's tile: kBlockN columns in panels of 64. Each panel has 64 k rows of 128 bytes, swizzled.
struct TileB : OperandTile<Major::mn, Swizzle::b128, Config::kBlockN, Config::kBlockK> {
  static __device__ __forceinline__ uint64_t descriptor(const unsigned char* tile) {
    return wgmma_descriptor<Swizzle::b128>(tile, 16, 1024);  // leading, stride: yours
  }
  /// Bytes from the start of the tile to element (n, k): n = 0 here, k = 0, 16, 32, 48.
  static __host__ __device__ constexpr int offset_bytes(int n, int k) {
    return n * 128 + k * 2;  // yours
  }
};

}  // namespace exercise_descriptor

template <>
struct Stage<exercise_descriptor::Config> : Stage<wgmma_swizzled::Config> {
  using B = exercise_descriptor::TileB;
};

struct ExerciseDescriptor : wgmma_tiles::LevelOn<exercise_descriptor::Config> {
  static constexpr LevelText text{
      .name = "exercise_descriptor",
      .changed = "the strides and steps of B's descriptor, by hand",
      .expect = "as level 3: one box per panel, no byte moved twice",
  };

  static Claims claims(const Problem& p) { return {tma_loads("a").requests(boxes_of_a(p))}; }
};

}  // namespace cookbook::gemm
