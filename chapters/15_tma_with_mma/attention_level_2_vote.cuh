// SPDX-License-Identifier: MIT
// Level 2: most key tiles change no maximum. As in level 7 of chapter 10, the maximum of a row may
// be out of date, as long as no weight exceeds 2^8. Here a thread compares the maximum of its own
// scores with the row's, and the warp votes. Only if a thread objects do the four lanes of a row
// exchange their maxima, and the output is rescaled.
#pragma once

#include "chapters/15_tma_with_mma/attention_tiles.cuh"

namespace cookbook::attention {

namespace vote {

inline constexpr float kSlack = 8;  // weights are at most 2^kSlack; fp16 holds up to 2^16

/// Replaces the scores of a warp's rows by weights, with the rows' maximum so far.
template <int kMTiles, int kScores, int kColumns>
__device__ __forceinline__ void softmax(float (&s)[kMTiles][kScores], RowStates (&rows)[kMTiles],
                                        float (&acc)[kMTiles][kColumns], float scale_log2) {
  float own[kMTiles][2];  // the largest of this thread's scores of a row
  bool moved = false;
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own[m][r] = kMinusInfinity;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        if (row_of(i) == r) own[m][r] = fmaxf(own[m][r], s[m][i]);
      }
      // [quote vote]
      moved |= (own[m][r] - rows[m].max[r]) * scale_log2 > kSlack;  // false for -inf - -inf
    }
  }
  if (__any_sync(kFullWarp, moved)) {
    // [end quote]
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      float rescale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float max = warp_max<4>(fmaxf(own[m][r], rows[m].max[r]));
        const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
        rescale[r] = ex2_approx_ftz(rows[m].max[r] * scale_log2 - offset);
        rows[m].max[r] = max;
        rows[m].sum[r] *= rescale[r];
      }
      scale_rows(acc[m], rescale);
    }
  }
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float max = rows[m].max[r];
      const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        if (row_of(i) == r) {
          s[m][i] = ex2_approx_ftz(s[m][i] * scale_log2 - offset);
          rows[m].sum[r] += s[m][i];
        }
      }
    }
  }
}

}  // namespace vote

template <class CaseT>
struct VoteConfig : warp_tiles::Config<CaseT> {
  __device__ __forceinline__ static void softmax(auto& s, auto& rows, auto& acc, float scale_log2) {
    vote::softmax(s, rows, acc, scale_log2);
  }
};

struct Vote : warp_tiles::LevelOfRows<VoteConfig> {
  static constexpr LevelText text{
      .name = "vote",
      .changed = "a warp votes whether a maximum has grown by more than 8 (log2)",
      .expect =
          "1.1x: per key tile and thread, 128 multiplications of the output, 8 shuffles and their "
          "latency are gone; they ran while this warp had nothing for the tensor cores",
      .cost = "a vote per tile; weights up to 256 instead of 1",
  };

  static Claims claims(const Problem&) { return claims_and(faster_than_previous(1.05)); }
};

}  // namespace cookbook::attention
