// SPDX-License-Identifier: MIT
// Exercise 4.3, a design: number the lanes of a warp. It computes 64 x 32 elements of C with 8 x 4
// lanes, 4 x 4 elements per lane and group. Numbered row by row, as below, the loads of A take two
// wavefronts each and those of B four. Find a numbering with two for both.
//
// A 16-byte load is served a quarter of a warp (lanes 0-7, 8-15 ...) at a time. Two quarters are
// served together where lanes 1 apart, or lanes 2 apart, read the same address throughout. Level 4
// does this for 4 x 8 lanes.
#pragma once

#include "chapters/04_double_buffering/level_4_warp_tile.cuh"

namespace cookbook::sgemm {

/// The position of a thread's elements of C, as in level 4, for a warp tile of 8 x 4 lanes.
template <class C>
struct LanesLayout {
  static constexpr int kStepM = C::kWarpM * 4 / C::kThreadM, kStepN = C::kWarpN * 4 / C::kThreadN;
  static_assert(kStepM == 8 * 4 && kStepN == 4 * 4, "8 x 4 lanes of 4 x 4 elements");
  int row, col;

  __device__ __forceinline__ LanesLayout() {
    constexpr int kWarpsN = C::kN / C::kWarpN;
    const int lane = lane_idx(), warp = warp_idx();
    row = warp / kWarpsN * C::kWarpM + 4 * (lane / 4);  // yours
    col = warp % kWarpsN * C::kWarpN + 4 * (lane % 4);  // yours
  }
  __device__ __forceinline__ int row_of(int i) const { return row + i / 4 * kStepM; }
  __device__ __forceinline__ int col_of(int j) const { return col + j / 4 * kStepN; }
};

struct LanesConfig : MultistageConfig {
  static constexpr int kWarpM = 64, kWarpN = 32;  // tile of C per warp
  template <class C>
  using Layout = LanesLayout<C>;
};

struct Lanes : MultistageLevel<LanesConfig> {
  static constexpr LevelText text{
      .name = "lanes",
      .changed = "a warp computes 64 x 32 of C, with lanes that you number",
      .expect = "two wavefronts for a load of either fragment",
      .cost = "a less obvious numbering",
  };

  static Claims claims(const Problem&) {
    return copy_claims({shared_loads().wavefronts_per_request(2)});
  }
};

}  // namespace cookbook::sgemm
