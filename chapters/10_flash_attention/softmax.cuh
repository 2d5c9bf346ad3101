// SPDX-License-Identifier: MIT
// Online softmax on a tile of scores in tensor-core accumulators (chapter 9 derives it).
//
// mma.sync and wgmma leave a 16-row tile in the same layout, with g = lane / 4, t = lane % 4:
//
//     s[4j + 0], s[4j + 1]   row g,     keys 8j + 2t, 8j + 2t + 1
//     s[4j + 2], s[4j + 3]   row g + 8, the same keys
//
// A thread holds parts of two rows, and the four lanes of a quad hold all of them.
#pragma once

#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/sync.cuh"
#include "common/device/timeline.cuh"
#include "common/device/warp.cuh"

namespace cookbook::attention {

/// Running softmax of the two rows that this thread holds parts of.
struct RowStates {
  float max[2] = {kMinusInfinity, kMinusInfinity};  // of the raw scores q.k; equal in a quad
  float sum[2] = {0, 0};  // this thread's columns only; finish_rows adds the quad's
};

/// The row (0: g, 1: g + 8) and key of accumulator i; the key without this lane's 2t.
__device__ constexpr int row_of(int i) { return (i >> 1) & 1; }
__device__ constexpr int key_of(int i) { return 8 * (i >> 2) + (i & 1); }

/// Sets scores of keys that a row does not see to -inf. `visible[r]`: the number of keys that row r
/// sees, counted from this tile's first; may be negative.
template <int kCount>
__device__ __forceinline__ void mask_scores(float (&s)[kCount], const int (&visible)[2]) {
  const int first = 2 * (lane_idx() % 4);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (key_of(i) >= visible[row_of(i)] - first) s[i] = kMinusInfinity;
  }
}

/// Replaces scores by weights p = exp2((s - max) scale_log2) and updates the rows' maximum and sum.
/// rescale[r]: the factor for everything accumulated for row r so far.
template <int kCount>
__device__ __forceinline__ void online_softmax(float (&s)[kCount], RowStates& rows,
                                               float (&rescale)[2], float scale_log2) {
  timeline::begin(timeline::Kind::softmax);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = rows.max[r];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (row_of(i) == r) max = fmaxf(max, s[i]);
    }
    max = warp_max<4>(max);
    // A row that has seen no key yet has the maximum -inf; subtracting it would give NaN.
    const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
    rescale[r] = ex2_approx_ftz(rows.max[r] * scale_log2 - offset);
    rows.max[r] = max;
    float sum = rows.sum[r] * rescale[r];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (row_of(i) == r) {
        s[i] = ex2_approx_ftz(s[i] * scale_log2 - offset);  // one FMA, one ex2
        sum += s[i];
      }
    }
    rows.sum[r] = sum;
  }
  timeline::end(timeline::Kind::softmax);
}

/// As online_softmax, but a row's maximum stays unchanged until a score of the tile exceeds it by
/// more than kSlack (in log2 units). The maximum only has to keep exp2 in range: any number near it
/// works, and weights up to 2^kSlack are as exact as weights up to 1. Returns, for the whole warp,
/// whether the maximum of any of its rows changed, so that the output must be rescaled.
template <int kSlack, int kCount>
__device__ __forceinline__ bool lazy_softmax(float (&s)[kCount], RowStates& rows,
                                             float (&rescale)[2], float scale_log2) {
  timeline::begin(timeline::Kind::softmax);
  bool any_moved = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float max = kMinusInfinity;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (row_of(i) == r) max = fmaxf(max, s[i]);
    }
    max = warp_max<4>(max);
    // [quote lazy]
    const bool moved = (max - rows.max[r]) * scale_log2 > kSlack;  // false for -inf - -inf
    max = moved ? max : rows.max[r];
    const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
    rescale[r] = moved ? ex2_approx_ftz(rows.max[r] * scale_log2 - offset) : 1.0f;
    // [end quote]
    rows.max[r] = max;
    any_moved |= moved;
    float sum = rows.sum[r] * rescale[r];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (row_of(i) == r) {
        s[i] = ex2_approx_ftz(s[i] * scale_log2 - offset);
        sum += s[i];
      }
    }
    rows.sum[r] = sum;
  }
  timeline::end(timeline::Kind::softmax);
  return __any_sync(kFullWarp, any_moved);
}

/// Makes the compiler finish the softmax before the following code. A wgmma wait has no operands,
/// so ptxas would move it above the exponentials that run during the wgmma. A branch on their sum,
/// which is never taken, keeps the wait below them.
__device__ __forceinline__ void finish_softmax_before_wait(const RowStates& rows) {
  if (rows.sum[0] + rows.sum[1] < 0.0f) spin_pause();
}

/// Multiplies the accumulated output rows by `rescale`.
template <int kCount>
__device__ __forceinline__ void scale_rows(float (&o)[kCount], const float (&rescale)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) o[i] *= rescale[row_of(i)];
}

/// Converts weights to 16 bits, in pairs. Four registers are a 16 x 16 A operand: the accumulators
/// and the A operand of a 16-bit mma have the same layout, so no data moves between lanes.
template <class T, int kCount>
__device__ __forceinline__ void pack_weights(uint32_t (&p)[kCount / 8][4],
                                             const float (&s)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 2) p[i / 8][i % 8 / 2] = pack_pair<T>(s[i], s[i + 1]);
}

/// After the last tile: adds the quad's sums. Returns 1 / sum per row (0 for a row without keys)
/// and the natural log-sum-exp (-inf for such a row).
__device__ __forceinline__ void finish_rows(const RowStates& rows, float scale_log2,
                                            float (&inverse)[2], float (&lse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = warp_sum<4>(rows.sum[r]);
    inverse[r] = sum == 0.0f ? 0.0f : 1.0f / sum;
    lse[r] = sum == 0.0f ? kMinusInfinity : rows.max[r] * scale_log2 * kLn2 + logf(sum);
  }
}

}  // namespace cookbook::attention
