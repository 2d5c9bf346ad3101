// SPDX-License-Identifier: MIT
// The algebra of the online softmax: a pair (max, sum) describes part of a row. Two such pairs
// merge into one, in any order and any grouping.
#pragma once

#include <limits>

#include "common/device/cuda.cuh"
#include "common/device/math.cuh"
#include "common/device/warp.cuh"

namespace cookbook::softmax {

/// e^x for x <= 0 on the special-function unit: 2^(x log2 e). Results below 2^-126 become 0.
__device__ __forceinline__ float exponential(float x) { return ex2_approx_ftz(x * kLog2E); }

/// The initial value of a running maximum. Not -inf: -inf - -inf is NaN, and two empty parts must
/// merge into an empty part. With the lowest finite number e^(-inf - max) is 0, as it should be. A
/// row of only -inf ends with sum 0 and 0 / 0, as the definition says.
constexpr float kLowest = std::numeric_limits<float>::lowest();

/// The maximum of part of a row, and the sum of e^(x - max) over it.
struct alignas(8) MaxSum {
  float max = kLowest;
  float sum = 0;
};

/// Merges two parts: both sums are rescaled to the larger maximum.
__device__ __forceinline__ MaxSum merge(const MaxSum& a, const MaxSum& b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * exponential(a.max - max) + b.sum * exponential(b.max - max)};
}

/// Adds kCount elements to a part, with one rescaling for all of them.
template <int kCount>
__device__ __forceinline__ void add(MaxSum& part, const float (&x)[kCount]) {
  // [quote add]
  float max = part.max;
#pragma unroll
  for (int j = 0; j < kCount; ++j) max = fmaxf(max, x[j]);
  float sum = part.sum * exponential(part.max - max);
#pragma unroll
  for (int j = 0; j < kCount; ++j) sum += exponential(x[j] - max);
  part = {max, sum};
  // [end quote]
}

/// Adds one element.
__device__ __forceinline__ void add(MaxSum& part, float x) {
  const float only[1] = {x};
  add(part, only);
}

/// Merges the parts of groups of kLanes neighbouring lanes, in every lane: first the lanes reduce
/// the maximum, then every lane rescales once, then they reduce the sums. All 32 lanes must call.
template <int kLanes = kWarpSize>
__device__ __forceinline__ MaxSum merge_lanes(const MaxSum& part) {
  // [quote merge_lanes]
  const float max = warp_max<kLanes>(part.max);
  return {max, warp_sum<kLanes>(part.sum * exponential(part.max - max))};
  // [end quote]
}

}  // namespace cookbook::softmax
