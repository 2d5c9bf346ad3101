// SPDX-License-Identifier: MIT
// Decode, level 0: one query per sequence, one block per (query, head). The keys are assigned to
// its warps round-robin. Each warp keeps its own softmax; at the end the block merges them.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "common/device/vector.cuh"

namespace cookbook::attention {

template <class CaseT>
struct DecodeConfig : CaseT {
  static constexpr int kWarps = 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kKeys = 4;  // keys per warp and step, all loads in flight at once
  static constexpr int kPerLane = CaseT::kHeadDim / 32;  // columns lane, lane + 32, ... per lane
};

/// A softmax over some of the keys.
template <int kCount>
struct Partial {
  float max = kMinusInfinity, sum = 0;
  float o[kCount] = {};

  /// Adds a softmax over other keys: both are rescaled to the larger maximum.
  __device__ __forceinline__ void merge(float other_max, float other_sum,
                                        const float (&other_o)[kCount], float scale_log2) {
    const float new_max = fmaxf(max, other_max);
    const float offset = new_max == kMinusInfinity ? 0.0f : new_max * scale_log2;
    const float mine = ex2_approx_ftz(max * scale_log2 - offset);
    const float theirs = ex2_approx_ftz(other_max * scale_log2 - offset);
    max = new_max;
    sum = sum * mine + other_sum * theirs;
#pragma unroll
    for (int x = 0; x < kCount; ++x) o[x] = o[x] * mine + other_o[x] * theirs;
  }
};

/// One warp's softmax over keys first, first + step, ... below `end`. A lane holds kPerLane
/// columns.
template <class C>
__device__ __forceinline__ void attend(Partial<C::kPerLane>& partial,
                                       const typename C::Element* q_row,
                                       const typename C::Element* k_head,
                                       const typename C::Element* v_head, int64_t stride, int first,
                                       int end, int step, float scale_log2) {
  using T = typename C::Element;
  constexpr int kPerLane = C::kPerLane;
  const int column = lane_idx();  // and column + 32, ...
  float q[kPerLane];
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) q[x] = to_float(q_row[column + 32 * x]);
  for (int j = first; j < end; j += step) {
    // Step 1: issue all loads of kKeys keys before any of them is waited for.
    T k[C::kKeys][kPerLane], v[C::kKeys][kPerLane];
#pragma unroll
    for (int n = 0; n < C::kKeys; ++n) {
      const int64_t at = min(j + n, end - 1) * stride + column;
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) {
        k[n][x] = k_head[at + 32 * x];  // [k]
        v[n][x] = v_head[at + 32 * x];  // [v]
      }
    }
    // Step 2: scores and their maximum.
    float s[C::kKeys], max = partial.max;
#pragma unroll
    for (int n = 0; n < C::kKeys; ++n) {
      float sum = 0;
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) sum += q[x] * to_float(k[n][x]);
      sum = warp_sum(sum);
      s[n] = j + n < end ? sum : kMinusInfinity;
      max = fmaxf(max, s[n]);
    }
    // Step 3: online softmax over all kKeys keys at once.
    const float offset = max == kMinusInfinity ? 0.0f : max * scale_log2;
    const float rescale = ex2_approx_ftz(partial.max * scale_log2 - offset);
    partial.max = max;
    partial.sum *= rescale;
#pragma unroll
    for (int x = 0; x < kPerLane; ++x) partial.o[x] *= rescale;
#pragma unroll
    for (int n = 0; n < C::kKeys; ++n) {
      if (j + n >= end) continue;  // a key read only to complete the step
      const float p = ex2_approx_ftz(s[n] * scale_log2 - offset);
      partial.sum += p;
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) partial.o[x] += p * to_float(v[n][x]);
    }
  }
}

/// Merges the partial softmaxes of the block's warps; warp 0 has the result.
template <class C>
__device__ __forceinline__ void merge_warps(Partial<C::kPerLane>& partial, float scale_log2) {
  __shared__ float maxima[C::kWarps], sums[C::kWarps], outputs[C::kWarps][C::kHeadDim];
  const int lane = lane_idx(), warp = warp_idx();
  if (lane == 0) maxima[warp] = partial.max, sums[warp] = partial.sum;
#pragma unroll
  for (int x = 0; x < C::kPerLane; ++x) outputs[warp][x * 32 + lane] = partial.o[x];
  __syncthreads();
  if (warp != 0) return;
  for (int w = 1; w < C::kWarps; ++w) {
    float o[C::kPerLane];
#pragma unroll
    for (int x = 0; x < C::kPerLane; ++x) o[x] = outputs[w][x * 32 + lane];
    partial.merge(maxima[w], sums[w], o, scale_log2);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    block_per_head_kernel(const typename C::Element* q, const typename C::Element* k,
                          const typename C::Element* v, typename C::Element* o, float* lse,
                          Shape shape) {
  constexpr int kPerLane = C::kPerLane;
  const int head = static_cast<int>(blockIdx.x % shape.heads_q);
  const int query = static_cast<int>(blockIdx.x / shape.heads_q % shape.seq_q);
  const int batch = static_cast<int>(blockIdx.x / shape.heads_q / shape.seq_q);
  const int64_t q_offset = shape.q_row(batch, query, head) * shape.pitch;
  const int64_t k_offset = shape.k_row(batch, 0, head) * shape.pitch;

  Partial<kPerLane> partial;
  attend<C>(partial, q + q_offset, k + k_offset, v + k_offset, shape.heads_kv * shape.pitch,
            warp_idx() * C::kKeys, shape.visible_keys(query), C::kWarps * C::kKeys,
            shape.scale_log2);
  merge_warps<C>(partial, shape.scale_log2);
  if (warp_idx() != 0) return;
  const float inverse = partial.sum == 0.0f ? 0.0f : 1.0f / partial.sum;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) {
    o[q_offset + lane_idx() + 32 * x] = from_float<typename C::Element>(partial.o[x] * inverse);
  }
  if (lane_idx() == 0) {
    lse[shape.lse_index(batch, query, head)] =
        partial.sum == 0.0f ? kMinusInfinity
                            : partial.max * shape.scale_log2 * kLn2 + logf(partial.sum);
  }
}

struct BlockPerHead : Level {
  static constexpr LevelText text{
      .name = "block_per_head",
      .changed = "one block per query and head; its warps split the keys",
      .expect =
          "every query head reads its KV head again: heads_q / heads_kv times the bytes, mostly "
          "from L2 when neighbouring heads run together",
      .cost = "with few sequences, few blocks: most SMs idle",
  };

  static Claims claims(const Problem& p) {
    const double keys = p.visible_pairs() * p.shape.batch * p.shape.heads_q;
    // Every query head reads its KV head's keys, up to kKeys - 1 of them twice.
    return {global_loads("k").bytes(2.0 * p.head_dim * keys, Relation::at_least),
            global_loads("k").on("k").sectors_per_request(2)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = DecodeConfig<decltype(c)>;
      const dim3 grid(static_cast<unsigned>(int64_t{s.batch} * s.seq_q * s.heads_q));
      launch(block_per_head_kernel<C>, {grid, C::kThreads}, stream, q, k, v, o, plan.buffers.lse,
             s);
    });
  }
};

}  // namespace cookbook::attention
