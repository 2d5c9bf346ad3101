// SPDX-License-Identifier: MIT
// What runs before and after the main kernel of every level, and its time is part of the level's.
//
//   before:  delta_i = do_i . o_i and lse_i in log2 units, per query; zeros for the sums of dq.
//            Where lse has a gradient, too, delta_i is less by it
//   after:   dq = c * sums, rounded to bf16 (from level 2 on, where several blocks add to a dq)
//
// The arrays are padded to whole query tiles. A query that does not exist has lse = inf, so
// its weights exp2(s - inf) are 0 and no tile needs a mask for it. So has a query that sees no key.
#pragma once

#include "chapters/13_attention_backward/problem.hpp"
#include "common/device/math.cuh"
#include "common/device/sync.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"

namespace cookbook::attention::backward {

/// Queries of a head, padded. The largest tile of any level.
inline constexpr int kPadding = 128;

/// Per padded query of each batch and head: [batch * heads_q][padded].
struct QueryStats {
  float* lse;  // in log2 units
  float* delta;
  float* dq;   // sums of dq, head_dim floats per query, or null
  int padded;  // queries per head

  __device__ __forceinline__ int64_t at(int batch, int heads, int head, int query) const {
    return (static_cast<int64_t>(batch) * heads + head) * padded + query;
  }
};

inline constexpr int kRowThreads = 256;  // eight warps, a row each

/// This lane's kHeadDim / 32 neighbouring columns of a row. kAligned: in one access.
template <int kHeadDim, bool kAligned>
__device__ __forceinline__ void load_columns(float (&to)[kHeadDim / 32], const bf16* row) {
  constexpr int kCount = kHeadDim / 32;
  if constexpr (kAligned) {
    const auto pack = load_vector<Pack<bf16, kCount>>(row + kCount * lane_idx());
#pragma unroll
    for (int x = 0; x < kCount; ++x) to[x] = to_float(pack[x]);
  } else {
#pragma unroll
    for (int x = 0; x < kCount; ++x) to[x] = to_float(row[kCount * lane_idx() + x]);
  }
}

/// A warp per padded query.
template <int kHeadDim, bool kAligned>
__global__ void __launch_bounds__(kRowThreads)
    delta_kernel(const bf16* o, const bf16* d_o, const float* lse, const float* d_lse,
                 QueryStats stats, Shape shape) {
  constexpr int kCount = kHeadDim / 32;
  allow_next_launch();  // for level 9
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + warp_idx();
  if (row >= static_cast<int64_t>(shape.batch) * shape.heads_q * stats.padded) return;
  const int query = static_cast<int>(row % stats.padded);
  const int head_index = static_cast<int>(row / stats.padded);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  if (stats.dq != nullptr) {
    store_vector(stats.dq + row * kHeadDim + kCount * lane_idx(), Pack<float, kCount>{});  // [zero]
  }
  float delta = 0;
  if (query < shape.seq_q) {
    float out[kCount], d_out[kCount];
    const int64_t at = shape.q_row(batch, query, head) * shape.pitch;
    load_columns<kHeadDim, kAligned>(out, o + at);      // [delta]
    load_columns<kHeadDim, kAligned>(d_out, d_o + at);  // [delta]
#pragma unroll
    for (int x = 0; x < kCount; ++x) delta += out[x] * d_out[x];
    delta = warp_sum(delta);
  }
  if (lane_idx() == 0) {
    const int64_t at = shape.lse_index(batch, query, head);
    const float own = query < shape.seq_q ? lse[at] : kMinusInfinity;
    if (d_lse != nullptr && query < shape.seq_q) delta -= d_lse[at];
    stats.lse[row] = own == kMinusInfinity ? -kMinusInfinity : own * kLog2E;
    stats.delta[row] = delta;
  }
}

/// dq = scale * sums. A warp per query.
template <int kHeadDim>
__global__ void __launch_bounds__(kRowThreads)
    convert_kernel(bf16* dq, QueryStats stats, Shape shape, float scale) {
  constexpr int kCount = kHeadDim / 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + warp_idx();
  if (row >= static_cast<int64_t>(shape.batch) * shape.heads_q * shape.seq_q) return;
  const int query = static_cast<int>(row % shape.seq_q);
  const int head_index = static_cast<int>(row / shape.seq_q);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  const auto sums = load_vector<Pack<float, kCount>>(
      stats.dq + stats.at(batch, shape.heads_q, head, query) * kHeadDim + kCount * lane_idx());
  Pack<uint32_t, kCount / 2> pairs;
#pragma unroll
  for (int x = 0; x < kCount; x += 2) {
    pairs[x / 2] = pack_pair<bf16>(sums[x] * scale, sums[x + 1] * scale);
  }
  store_vector(dq + shape.q_row(batch, query, head) * shape.pitch + kCount * lane_idx(), pairs);
}

/// 1 / sqrt(head_dim), the factor of dq and dk.
inline float gradient_scale(const Problem& p) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(p.head_dim())));
}

/// Host side of every level: the memory of the query stats and the launches around the main kernel.
struct PlanBase {
  Problem problem;
  Buffers buffers;
  DeviceMemory lse, delta, dq;

  PlanBase(const Problem& p, const Buffers& at, bool sums_of_dq)
      : problem(p),
        buffers(at),
        lse(rows(p) * sizeof(float), "lse_log2"),
        delta(rows(p) * sizeof(float), "delta"),
        dq(sums_of_dq ? rows(p) * p.head_dim() * sizeof(float) : 0, "dq_sums") {}

  static int padded(const Problem& p) { return ceil_div(p.shape().seq_q, kPadding) * kPadding; }
  /// Padded queries of all heads.
  static size_t rows(const Problem& p) {
    return size_t(p.shape().batch) * p.shape().heads_q * padded(p);
  }
  /// Bytes of lse, delta and dq.
  static size_t workspace(const Problem& p) { return rows(p) * (2 + p.head_dim()) * sizeof(float); }
  QueryStats stats() const {
    return {lse.as<float>(), delta.as<float>(), dq.bytes() == 0 ? nullptr : dq.as<float>(),
            padded(problem)};
  }
  static dim3 row_blocks(int64_t rows) {
    return dim3(static_cast<unsigned>(ceil_div(rows, int64_t{kRowThreads / 32})));
  }
  /// Launches delta_kernel. `aligned`: rows of o and do begin at multiples of 16 bytes.
  void before(Stream stream, bool aligned) const {
    with_head_dim(problem, [&](auto d) {
      constexpr int kHeadDim = decltype(d)::value;
      launch(aligned ? delta_kernel<kHeadDim, true> : delta_kernel<kHeadDim, false>,
             {row_blocks(static_cast<int64_t>(rows(problem))), kRowThreads}, stream, buffers.o,
             buffers.d_o, buffers.lse, buffers.d_lse, stats(), problem.shape());
    });
  }
  /// Launches convert_kernel.
  void after(Stream stream) const {
    with_head_dim(problem, [&](auto d) {
      launch(convert_kernel<decltype(d)::value>,
             {row_blocks(problem.forward.q_rows()), kRowThreads}, stream, buffers.dq, stats(),
             problem.shape(), gradient_scale(problem));
    });
  }
};

}  // namespace cookbook::attention::backward
