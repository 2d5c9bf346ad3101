// SPDX-License-Identifier: MIT
// Online softmax on a tile of scores that lies in tensor-core accumulators (chapter 9 derives it).
//
// mma.sync and wgmma leave a 16-row tile the same way, with g = lane / 4, t = lane % 4:
//
//     s[4j + 0], s[4j + 1]   row g,     keys 8j + 2t, 8j + 2t + 1
//     s[4j + 2], s[4j + 3]   row g + 8, the same keys
//
// so a thread holds parts of two rows and the four lanes of a quad share them.
#pragma once

#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/warp.cuh"

namespace cookbook::attention {

/// Running softmax of the two rows of which this thread holds parts.
struct RowStates {
  float max[2] = {kMinusInfinity, kMinusInfinity};  // of the raw scores q.k; equal in a quad
  float sum[2] = {0, 0};                            // this thread's share; added up in finish_rows
};

/// The row (0: g, 1: g + 8) and key of accumulator i; the key without this lane's 2t.
__device__ constexpr int row_of(int i) { return (i >> 1) & 1; }
__device__ constexpr int key_of(int i) { return 8 * (i >> 2) + (i & 1); }

/// Scores of keys that a row does not see become -inf. `visible[r]`: how many keys from this tile's
/// first on row r sees; may be negative.
template <int kCount>
__device__ __forceinline__ void mask_scores(float (&s)[kCount], const int (&visible)[2]) {
  const int first = 2 * (lane_idx() % 4);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (key_of(i) >= visible[row_of(i)] - first) s[i] = kMinusInfinity;
  }
}

/// Replaces scores by weights p = exp2((s - max) scale_log2) and updates the rows' maximum and sum.
/// rescale[r]: what everything summed for row r so far has to be multiplied by.
template <int kCount>
__device__ __forceinline__ void online_softmax(float (&s)[kCount], RowStates& rows,
                                               float (&rescale)[2], float scale_log2) {
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
}

/// Multiplies the accumulated output rows by `rescale`.
template <int kCount>
__device__ __forceinline__ void scale_rows(float (&o)[kCount], const float (&rescale)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) o[i] *= rescale[row_of(i)];
}

/// Weights to 16 bits, in pairs. Four registers are an A operand of 16 x 16: accumulators and A
/// operands of 16-bit products have the same layout, so that this is all it takes.
template <class T, int kCount>
__device__ __forceinline__ void pack_weights(uint32_t (&p)[kCount / 8][4],
                                             const float (&s)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 2) p[i / 8][i % 8 / 2] = pack_pair<T>(s[i], s[i + 1]);
}

/// After the last tile: adds the quad's sums and returns 1 / sum per row (0 for a row without keys)
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
