// SPDX-License-Identifier: MIT
// Level 3: level 1's kernel with another epilogue: no warp waits for the stores of a tile.
#pragma once

#include "chapters/08_persistent/level_1_static.cuh"

namespace cookbook::gemm {

namespace hidden_epilogue {

/// No barrier: TMA stores the packed boxes while the warp computes the next tile.
struct Epilogue {
  template <class C, int kMmaM, int kAccumulators>
  static __device__ __forceinline__ void store(const float (&acc)[kMmaM][kAccumulators],
                                               const TensorMap* map_c, unsigned char* boxes,
                                               int row, int col) {
    tma_store::store_tile<C::kStoreBuffers>(acc, map_c, boxes, row, col);
  }
  static __device__ __forceinline__ void end() {
    if (lane_idx() == 0) tma_store_wait_read<0>();  // before the exit: TMA still reads the boxes
  }
};

template <Major kA = Major::k, Major kB = Major::mn>
struct Config : persistent_static::Config<kA, kB> {
  using Epilogue = hidden_epilogue::Epilogue;
};

}  // namespace hidden_epilogue

struct HiddenEpilogue : persistent_static::LevelOn<hidden_epilogue::Config> {
  static constexpr LevelText text{
      .name = "hidden_epilogue",
      .changed = "no wait and no barrier after a tile: TMA stores it during the next tile's wgmma",
      .expect =
          "1.02x: the warpgroups drift apart, so one packs C while the other uses the tensor cores",
      .cost = "nothing: a warp waits for a box only when it packs it again",
  };

  static Claims claims(const Problem& p) {
    return {tma_loads("a").requests(boxes_of_a(p)), shared_stores().on("stage").conflict_free(),
            faster_than_previous(1.0)};
  }
};

}  // namespace cookbook::gemm
