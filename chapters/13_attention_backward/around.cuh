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

inline constexpr int kRowThreads = 256;  // eight warps

/// kCount neighbouring columns of a row, number `part` of its columns. kAligned: in one access.
template <bool kAligned, int kCount>
__device__ __forceinline__ void load_columns(float (&to)[kCount], const bf16* row,
                                             int part = lane_idx()) {
  if constexpr (kAligned) {
    const auto pack = load_vector<Pack<bf16, kCount>>(row + kCount * part);
#pragma unroll
    for (int x = 0; x < kCount; ++x) to[x] = to_float(pack[x]);
  } else {
#pragma unroll
    for (int x = 0; x < kCount; ++x) to[x] = to_float(row[kCount * part + x]);
  }
}

/// How delta_kernel distributes rows: eight columns per lane, so two or four rows of o fit into a
/// request, and two such groups of rows per warp are in flight.
template <int kHeadDim>
struct DeltaRows {
  static constexpr int kLanes = kHeadDim / 8;  // per row
  static constexpr int kGroups = 2;
  static constexpr int kPerGroup = 32 / kLanes, kPerWarp = kGroups * kPerGroup;
  static constexpr int kPerBlock = kRowThreads / 32 * kPerWarp;
  static_assert(kPadding % kPerBlock == 0, "the rows of a block are of one head");
};

/// For all padded queries. Neighbouring blocks have neighbouring heads, whose rows of o are
/// neighbours.
template <int kHeadDim, bool kAligned>
__global__ void __launch_bounds__(kRowThreads)
    delta_kernel(const bf16* o, const bf16* d_o, const float* lse, const float* d_lse,
                 QueryStats stats, Shape shape) {
  using Rows = DeltaRows<kHeadDim>;
  allow_next_launch();  // for level 9
  const int at = static_cast<int>(blockIdx.x) / shape.heads_q,
            per_head = stats.padded / Rows::kPerBlock;
  const int head = static_cast<int>(blockIdx.x) % shape.heads_q, batch = at / per_head;
  const int warp_query = at % per_head * Rows::kPerBlock + warp_idx() * Rows::kPerWarp;
  const int lane_row = lane_idx() / Rows::kLanes, part = lane_idx() % Rows::kLanes;

  float out[Rows::kGroups][8] = {}, d_out[Rows::kGroups][8] = {};
#pragma unroll
  for (int i = 0; i < Rows::kGroups; ++i) {
    const int query = warp_query + i * Rows::kPerGroup + lane_row;
    if (query >= shape.seq_q) continue;
    const int64_t row = shape.q_row(batch, query, head) * shape.pitch;
    load_columns<kAligned>(out[i], o + row, part);      // [delta]
    load_columns<kAligned>(d_out[i], d_o + row, part);  // [delta]
  }
  const int64_t first_stat = stats.at(batch, shape.heads_q, head, warp_query);
  if (stats.dq != nullptr) {
#pragma unroll
    for (int i = 0; i < Rows::kPerWarp * kHeadDim; i += 4 * 32) {
      store_vector(stats.dq + first_stat * kHeadDim + i + 4 * lane_idx(), floatx4{});  // [zero]
    }
  }
#pragma unroll
  for (int i = 0; i < Rows::kGroups; ++i) {
    float delta = 0;
#pragma unroll
    for (int x = 0; x < 8; ++x) delta += out[i][x] * d_out[i][x];
    delta = warp_sum<Rows::kLanes>(delta);
    if (part != 0) continue;
    const int in_warp = i * Rows::kPerGroup + lane_row, query = warp_query + in_warp;
    const int64_t index = shape.lse_index(batch, query, head);
    const float own = query < shape.seq_q ? lse[index] : kMinusInfinity;
    if (d_lse != nullptr && query < shape.seq_q) delta -= d_lse[index];
    stats.lse[first_stat + in_warp] = own == kMinusInfinity ? -kMinusInfinity : own * kLog2E;
    stats.delta[first_stat + in_warp] = delta;
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
      const auto blocks = static_cast<unsigned>(rows(problem) / DeltaRows<kHeadDim>::kPerBlock);
      launch(aligned ? delta_kernel<kHeadDim, true> : delta_kernel<kHeadDim, false>,
             {blocks, kRowThreads}, stream, buffers.o, buffers.d_o, buffers.lse, buffers.d_lse,
             stats(), problem.shape());
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
