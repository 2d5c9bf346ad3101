// SPDX-License-Identifier: MIT
// Level 0: the formulas, a warp per row of a gradient. One kernel has rows of dq, the other rows of
// dk and dv, so that no two warps add to the same row. Both compute s and dp of every pair again:
// seven dot products and sums per pair instead of five.
#pragma once

#include "chapters/13_attention_backward/around.cuh"

namespace cookbook::attention::backward {

/// p and ds of one pair from this lane's columns of the four rows.
struct Pair {
  float p, ds;
};
template <int kCount>
__device__ __forceinline__ Pair pair_of(const float (&q)[kCount], const float (&k)[kCount],
                                        const float (&d_o)[kCount], const float (&v)[kCount],
                                        float lse, float delta, float scale_log2) {
  // [quote rows]
  float s = 0, dp = 0;
#pragma unroll
  for (int x = 0; x < kCount; ++x) {
    s += q[x] * k[x];
    dp += d_o[x] * v[x];
  }
  const float p = ex2_approx_ftz(warp_sum(s) * scale_log2 - lse);
  return {p, p * (warp_sum(dp) - delta)};
  // [end quote]
}

template <int kHeadDim>
__global__ void __launch_bounds__(kRowThreads)
    query_rows_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dq,
                      QueryStats stats, Shape shape, float scale) {
  constexpr int kCount = kHeadDim / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + warp_idx();
  if (row >= static_cast<int64_t>(shape.batch) * shape.seq_q * shape.heads_q) return;
  const int head = static_cast<int>(row % shape.heads_q);
  const int query = static_cast<int>(row / shape.heads_q % shape.seq_q);
  const int batch = static_cast<int>(row / shape.heads_q / shape.seq_q);
  float own_q[kCount], own_do[kCount], sum[kCount] = {};
  load_columns<false>(own_q, q + row * shape.pitch);
  load_columns<false>(own_do, d_o + row * shape.pitch);
  const int64_t at = stats.at(batch, shape.heads_q, head, query);
  const float lse = stats.lse[at], delta = stats.delta[at];
  const int keys = shape.visible_keys(query);
  for (int j = 0; j < keys; ++j) {
    float key[kCount], value[kCount];
    load_columns<false>(key, k + shape.k_row(batch, j, head) * shape.pitch);
    load_columns<false>(value, v + shape.k_row(batch, j, head) * shape.pitch);
    const auto [p, ds] = pair_of(own_q, key, own_do, value, lse, delta, shape.scale_log2);
#pragma unroll
    for (int x = 0; x < kCount; ++x) sum[x] += ds * key[x];
  }
#pragma unroll
  for (int x = 0; x < kCount; ++x) {
    dq[row * shape.pitch + kCount * lane_idx() + x] = from_float<bf16>(sum[x] * scale);
  }
}

/// First query that sees key j, where a query that sees more keys comes later.
__device__ __forceinline__ int first_query_of(const Shape& shape, int j) {
  return shape.causal ? max(0, j - (shape.seq_k - shape.seq_q)) : 0;
}

template <int kHeadDim>
__global__ void __launch_bounds__(kRowThreads)
    key_rows_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dk,
                    bf16* dv, QueryStats stats, Shape shape, float scale) {
  constexpr int kCount = kHeadDim / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + warp_idx();
  if (row >= static_cast<int64_t>(shape.batch) * shape.seq_k * shape.heads_kv) return;
  const int kv_head = static_cast<int>(row % shape.heads_kv);
  const int key_index = static_cast<int>(row / shape.heads_kv % shape.seq_k);
  const int batch = static_cast<int>(row / shape.heads_kv / shape.seq_k);
  float key[kCount], value[kCount], dk_sum[kCount] = {}, dv_sum[kCount] = {};
  load_columns<false>(key, k + row * shape.pitch);
  load_columns<false>(value, v + row * shape.pitch);
  const int group = shape.heads_q / shape.heads_kv;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int i = first_query_of(shape, key_index); i < shape.seq_q; ++i) {
      float query[kCount], d_out[kCount];
      load_columns<false>(query, q + shape.q_row(batch, i, head) * shape.pitch);
      load_columns<false>(d_out, d_o + shape.q_row(batch, i, head) * shape.pitch);
      const int64_t at = stats.at(batch, shape.heads_q, head, i);
      const auto [p, ds] =
          pair_of(query, key, d_out, value, stats.lse[at], stats.delta[at], shape.scale_log2);
#pragma unroll
      for (int x = 0; x < kCount; ++x) {
        dv_sum[x] += p * d_out[x];
        dk_sum[x] += ds * query[x];
      }
    }
  }
#pragma unroll
  for (int x = 0; x < kCount; ++x) {
    const int64_t at = row * shape.pitch + kCount * lane_idx() + x;
    dk[at] = from_float<bf16>(dk_sum[x] * scale);
    dv[at] = from_float<bf16>(dv_sum[x]);
  }
}

struct Rows : Level {
  static constexpr LevelText text{
      .name = "rows",
      .changed = "a warp per row: one kernel for dq, one for dk and dv",
      .expect =
          "3 TFLOP/s: each pair of a query and a key takes four loads and two reductions over the "
          "lanes for 4 d multiply-adds",
      .cost = "s and dp are computed twice; 8 bytes per query for lse and delta",
  };

  using Plan = PlanBase;
  static Plan prepare(const Problem& p, const Buffers& at) { return {p, at, false}; }
  static Claims claims(const Problem& p) {
    // A row per visible pair, and each row once more where it is the warp's own.
    const double row = 2.0 * p.head_dim();
    const double pairs = p.forward.visible_pairs() * p.shape().batch * p.shape().heads_q;
    return {global_loads("k").bytes(row * (pairs + static_cast<double>(p.forward.k_rows()))),
            global_loads("q").bytes(row * (pairs + static_cast<double>(p.forward.q_rows())))};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape();
    const Buffers& at = plan.buffers;
    plan.before(stream, false);
    with_head_dim(plan.problem, [&](auto d) {
      constexpr int kHeadDim = decltype(d)::value;
      const float scale = gradient_scale(plan.problem);
      launch(query_rows_kernel<kHeadDim>,
             {PlanBase::row_blocks(plan.problem.forward.q_rows()), kRowThreads}, stream, at.q, at.k,
             at.v, at.d_o, at.dq, plan.stats(), s, scale);
      launch(key_rows_kernel<kHeadDim>,
             {PlanBase::row_blocks(plan.problem.forward.k_rows()), kRowThreads}, stream, at.q, at.k,
             at.v, at.d_o, at.dk, at.dv, plan.stats(), s, scale);
    });
  }
};

}  // namespace cookbook::attention::backward
