// SPDX-License-Identifier: MIT
// Level 4: each warp computes a compact tile of C, and its lanes are numbered so that loading
// either fragment takes the fewest wavefronts. The kernel is level 3's, with another Config.
#pragma once

#include "chapters/04_double_buffering/level_3_multistage.cuh"
#include "common/device/warp.cuh"

namespace cookbook::sgemm {

/// The position of a thread's elements of C in the tile of its block.
///
/// A warp computes kWarpM x kWarpN elements with its lanes as 4 rows x 8 columns. A lane computes
/// groups of four rows with a stride of kStepM, times groups of four columns with a stride of
/// kStepN. Its first group starts at (row, col). Lanes are numbered in pairs down a column:
///
///      lane:    0  2  4  6  8 10 12 14      read A: 4 different pieces of 16 bytes
///               1  3  5  7  9 11 13 15      read B: 8 different pieces of 16 bytes
///              16 18 20 22 24 26 28 30
///              17 19 21 23 25 27 29 31
///
/// A 16-byte access is served one quarter-warp at a time. Two quarters are served together if lanes
/// 1 apart or lanes 2 apart read the same address. For B lanes 2i and 2i + 1 do, for A lanes i and
/// i + 2: two wavefronts each. Numbered row by row, lanes 1 and 2 apart would differ for B: four
/// wavefronts.
template <class C>
struct WarpLayout {
  static constexpr int kStepM = C::kWarpM * 4 / C::kThreadM, kStepN = C::kWarpN * 4 / C::kThreadN;
  static_assert(kStepM == 4 * 4 && kStepN == 8 * 4, "4 x 8 lanes of 4 x 4 elements");
  static_assert(C::kM % C::kWarpM == 0 && C::kN % C::kWarpN == 0);
  static_assert(C::kM / C::kWarpM * (C::kN / C::kWarpN) * 32 == C::kThreads, "one tile per warp");
  int row, col;

  __device__ __forceinline__ WarpLayout() {
    constexpr int kWarpsN = C::kN / C::kWarpN;
    const int lane = lane_idx(), warp = warp_idx();
    // [quote warp_tile]
    row = warp / kWarpsN * C::kWarpM + 4 * (lane / 16 * 2 + lane % 2);
    col = warp % kWarpsN * C::kWarpN + 4 * (lane % 16 / 2);
    // [end quote]
  }
  __device__ __forceinline__ int row_of(int i) const { return row + i / 4 * kStepM; }
  __device__ __forceinline__ int col_of(int j) const { return col + j / 4 * kStepN; }
};

struct WarpTileConfig : MultistageConfig {
  static constexpr int kWarpM = 32, kWarpN = 64;  // tile of C per warp
  template <class C>
  using Layout = WarpLayout<C>;
};

struct WarpTile : MultistageLevel<WarpTileConfig> {
  static constexpr LevelText text{
      .name = "warp_tile",
      .changed =
          "a warp computes 32 x 64 of C instead of 16 x 128 in four strips; lanes numbered in "
          "pairs",
      .expect =
          "12 wavefronts per step of k become 8: shared memory is busy half of the time instead of "
          "three quarters",
      .cost = "only a less obvious numbering: the same registers and shared memory",
  };

  static Claims claims(const Problem&) {
    return copy_claims(
        {shared_loads().wavefronts_per_request(2),
         at_least_previous(0.97,
                           "shared memory was not what the level below waited for; level 5 "
                           "needs the layout")});
  }
};

}  // namespace cookbook::sgemm
