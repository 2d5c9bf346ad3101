// SPDX-License-Identifier: MIT
// The algebra of the online softmax: what is known about part of a row is a pair (max, sum), and
// two such pairs merge into one, in any order and any grouping.
#pragma once

#include <limits>

#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/warp.cuh"

namespace cookbook::softmax {

/// e^x for x <= 0 on the special-function unit: 2^(x log2 e). Results below 2^-126 become 0.
__device__ __forceinline__ float exponential(float x) { return ex2_approx_ftz(x * kLog2E); }

/// Where a running maximum starts. Not -inf: -inf - -inf is NaN, and two empty parts must merge
/// into an empty part. With the lowest finite number e^(-inf - max) is 0, as it should be, and a
/// row of nothing but -inf ends with sum 0 and 0 / 0, as the definition says.
constexpr float kLowest = std::numeric_limits<float>::lowest();

/// max over part of a row, and the sum of e^(x - max) over it.
struct alignas(8) MaxSum {
  float max = kLowest;
  float sum = 0;
};

/// What is known about two parts together: both sums brought to the larger maximum.
__device__ __forceinline__ MaxSum merge(const MaxSum& a, const MaxSum& b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * exponential(a.max - max) + b.sum * exponential(b.max - max)};
}

/// Adds kCount elements to a part: one rescaling for all of them.
template <int kCount>
__device__ __forceinline__ void add(MaxSum& part, const float (&x)[kCount]) {
  float max = part.max;
#pragma unroll
  for (int j = 0; j < kCount; ++j) max = fmaxf(max, x[j]);
  float sum = part.sum * exponential(part.max - max);
#pragma unroll
  for (int j = 0; j < kCount; ++j) sum += exponential(x[j] - max);
  part = {max, sum};
}

/// Merges the parts of groups of kLanes neighbouring lanes, in every lane: first the maximum goes
/// round, then every lane rescales once, then the sums go round. All 32 lanes must call.
template <int kLanes = kWarpSize>
__device__ __forceinline__ MaxSum merge_lanes(const MaxSum& part) {
  const float max = warp_max<kLanes>(part.max);
  return {max, warp_sum<kLanes>(part.sum * exponential(part.max - max))};
}

}  // namespace cookbook::softmax
