// SPDX-License-Identifier: MIT
// Level 7: lazy rescaling. The maximum in exp2(s - max) only has to keep the weights in range, so
// it may be out of date. It is updated only when the true maximum is more than 8 larger (in log2
// units: a weight would exceed 2^8). This is rare after the first tiles. Otherwise the output keeps
// its scale, which saves d / 2 multiplications per thread and tile between one P V and the next.
// The kernel is level 6's; `lazy_softmax` (softmax.cuh) tells it whether to rescale.
#pragma once

#include "chapters/10_flash_attention/level_6_overlapped.cuh"

namespace cookbook::attention {

template <class CaseT>
struct LazyConfig : SpecialisedConfig<CaseT> {
  static constexpr int kSlack = 8;  // weights are at most 2^kSlack; fp16 holds up to 2^16
  template <int kCount>
  __device__ __forceinline__ static bool softmax(float (&s)[kCount], RowStates& rows,
                                                 float (&rescale)[2], float scale_log2) {
    return lazy_softmax<kSlack>(s, rows, rescale, scale_log2);
  }
};

struct Lazy : HopperLevel<LazyConfig> {
  static constexpr LevelText text{
      .name = "lazy_rescale",
      .changed = "the output is rescaled only when a maximum has grown by more than 8 (log2)",
      .expect =
          "d / 2 of about 500 instructions per tile and thread disappear; they ran while this "
          "warpgroup had no wgmma in flight",
      .cost = "a vote per tile; weights up to 256 instead of 1",
  };

  static Claims claims(const Problem& p) { return key_claims(p, faster_than_previous(1.02)); }
  static void run(const Plan& plan, Stream stream) {
    launch_tiles(plan, stream, [](auto config) { return overlapped_kernel<decltype(config)>; });
  }
};

}  // namespace cookbook::attention
