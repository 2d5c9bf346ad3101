// SPDX-License-Identifier: MIT
// Exercise 7.1, a hole: level 2, but you compute the address of a 16-byte chunk. As it stands the
// address ignores the swizzle. Two rows share 128 bytes: which bits of the row decide, and what do
// they change?
#pragma once

#include "chapters/07_swizzle/level_2_swizzle_64.cuh"

namespace cookbook::gemm {

namespace exercise_swizzle {

struct Config : smem_swizzle::Config<Swizzle::b64> {};

/// A tile in panels of 64 bytes (32 elements): kRows rows each, as TMA writes them.
template <int kRows, int kCols>
struct Tile : tma_tiles::PanelTile<Swizzle::b64, kRows, kCols> {
  /// The address of the 16 bytes that begin with element (row, col); col is a multiple of 8.
  static __device__ __forceinline__ const unsigned char* at(const unsigned char* tile, int row,
                                                            int col) {
    const int panel = col / 32, chunk = col % 32 / 8;            // chunks of 16 bytes: four per row
    return tile + panel * (kRows * 64) + row * 64 + chunk * 16;  // yours
  }
};

}  // namespace exercise_swizzle

template <>
struct tma_tiles::Traits<exercise_swizzle::Config>
    : tma_tiles::Traits<smem_swizzle::Config<Swizzle::b64>> {
  using A =
      exercise_swizzle::Tile<exercise_swizzle::Config::kBlockM, exercise_swizzle::Config::kBlockK>;
  using B =
      exercise_swizzle::Tile<exercise_swizzle::Config::kBlockK, exercise_swizzle::Config::kBlockN>;
};

struct ExerciseSwizzle : tma_tiles::LevelOn<exercise_swizzle::Config> {
  static constexpr LevelText text{
      .name = "exercise_swizzle",
      .changed = "the 64-byte swizzle, undone by hand",
      .expect = "four wavefronts per ldmatrix, as level 2",
  };

  static Claims claims(const Problem&) { return {shared_loads().conflict_free()}; }
};

}  // namespace cookbook::gemm
