// SPDX-License-Identifier: MIT
// Level 1: chapter 10's kernel on mma.sync, with addresses that do not depend on the loop. A lane
// computes once where its rows of Q, K and V are, and which 16 bytes of a tile it copies.
// Everything else is a constant further, so a load is one instruction and the loops over d are
// unrolled: the compiler loads the next fragments while the tensor cores multiply these.
#pragma once

#include "chapters/15_tma_with_mma/attention_tiles.cuh"

namespace cookbook::attention {

template <class CaseT>
struct LaneRowsConfig : warp_tiles::Config<CaseT> {
  __device__ __forceinline__ static void softmax(auto& s, auto& rows, auto& acc, float scale_log2) {
#pragma unroll
    for (int m = 0; m < LaneRowsConfig::kMTiles; ++m) {
      float rescale[2];
      online_softmax(s[m], rows[m], rescale, scale_log2);
      scale_rows(acc[m], rescale);
    }
  }
};

struct LaneRows : warp_tiles::LevelOfRows<LaneRowsConfig> {
  static constexpr LevelText text{
      .name = "lane_rows",
      .changed = "a lane computes its addresses once; the loops over d are unrolled",
      .expect =
          "1.5x: 256 mma.sync take 1,690 clocks of a scheduler per key tile and warp; most of the "
          "other instructions compute addresses, and no fragment is loaded ahead",
      .cost = "a loop of 1,200 instructions",
  };

  static Claims claims(const Problem&) { return claims_and(faster_than_previous(1.3)); }
};

}  // namespace cookbook::attention
