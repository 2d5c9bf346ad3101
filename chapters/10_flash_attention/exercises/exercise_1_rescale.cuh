// SPDX-License-Identifier: MIT
// Exercise 10.1, a kernel with a hole: one warp per query, without its online softmax. As it stands
// the weights are exp2(s) with no maximum subtracted. That is right for small scores, but gives inf
// and NaN for large ones ("wide" inputs). Two passes over the keys would repair it too, but fail
// the claim that K is read once.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "common/device/vector.cuh"

namespace cookbook::attention {

template <class CaseT>
struct RescaleConfig : CaseT {
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kBlockM = kWarps;  // queries per block, one per warp
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    rescale_kernel(const typename C::Element* q, const typename C::Element* k,
                   const typename C::Element* v, typename C::Element* o, float* lse, Shape shape,
                   int query_tiles) {
  constexpr int kPerLane = C::kHeadDim / 32;  // a lane holds columns lane, lane + 32, ...
  const int lane = lane_idx();
  const int query = static_cast<int>(blockIdx.x % query_tiles) * C::kBlockM + warp_idx();
  const int head_index = static_cast<int>(blockIdx.x / query_tiles);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  if (query >= shape.seq_q) return;

  // Step 1: load the query into registers, distributed over the warp.
  float q_row[kPerLane], acc[kPerLane] = {};
  const int64_t q_offset = shape.q_row(batch, query, head) * shape.pitch + lane;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) q_row[x] = to_float(q[q_offset + 32 * x]);

  float max = kMinusInfinity, sum = 0;
  const int keys = shape.visible_keys(query);
  for (int j = 0; j < keys; ++j) {
    const int64_t k_offset = shape.k_row(batch, j, head) * shape.pitch + lane;
    // Step 2: one score, reduced across the warp.
    float s = 0;
#pragma unroll
    for (int x = 0; x < kPerLane; ++x) s += q_row[x] * to_float(k[k_offset + 32 * x]);  // [k]
    s = warp_sum(s);
    // Step 3: YOURS. Given the score s of key j (not yet scaled) and the state so far,
    //   max   the largest score,
    //   sum   sum of exp2((score - max) * shape.scale_log2),
    //   acc   the same weights times the values,
    // set p, the weight of this key, and rescale, the factor by which sum and acc must be
    // multiplied, and update max and sum. Mind a query whose scores are all -inf: -inf - -inf is
    // NaN.
    const float rescale = 1.0f;
    const float p = ex2_approx_ftz(s * shape.scale_log2);
    sum = sum + p;
    max = 0.0f;
    // Step 4: the output row so far.
#pragma unroll
    for (int x = 0; x < kPerLane; ++x) {
      acc[x] = acc[x] * rescale + p * to_float(v[k_offset + 32 * x]);  // [v]
    }
  }

  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) {
    o[q_offset + 32 * x] = from_float<typename C::Element>(acc[x] * inverse);
  }
  if (lane == 0) {
    lse[shape.lse_index(batch, query, head)] =
        sum == 0.0f ? kMinusInfinity : max * shape.scale_log2 * kLn2 + logf(sum);
  }
}

struct Rescale : Level {
  static constexpr LevelText text{
      .name = "rescale",
      .changed = "exercise: the online softmax, by you",
      .expect = "K is read once per query",
  };

  static Claims claims(const Problem& p) {
    const double keys = p.visible_pairs() * p.shape.batch * p.shape.heads_q;
    return {global_loads("k").bytes(2.0 * p.head_dim * keys),
            global_loads("k").sectors_per_request(2),
            global_stores("lse").bytes(4.0 * static_cast<double>(p.q_rows()))};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = RescaleConfig<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(rescale_kernel<C>, {grid, C::kThreads}, stream, q, k, v, o, plan.buffers.lse, s,
             query_tiles);
    });
  }
};

}  // namespace cookbook::attention
