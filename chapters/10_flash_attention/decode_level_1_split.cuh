// SPDX-License-Identifier: MIT
// Decode, level 1: split KV. The keys of one query are divided among several blocks. Each block
// writes its own softmax (o in fp32, maximum and sum), and a second kernel merges them. There are
// enough blocks for every SM, however few sequences there are.
#pragma once

#include "chapters/10_flash_attention/decode_level_0_block_per_head.cuh"
#include "chapters/10_flash_attention/problem.hpp"

namespace cookbook::attention {

/// Softmaxes over subsets (shares) of the keys: share n of query row r is at index n * rows + r.
struct Shares {
  float* o;    // [shares][rows][head_dim], not divided by the sum
  float* max;  // [shares][rows], of the raw scores
  float* sum;  // [shares][rows]
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    split_kernel(const typename C::Element* q, const typename C::Element* k,
                 const typename C::Element* v, Shares out, Shape shape, int64_t rows,
                 int keys_per_share) {
  constexpr int kPerLane = C::kPerLane;
  const int64_t row = blockIdx.x % rows;
  const int share = static_cast<int>(blockIdx.x / rows);
  const int head = static_cast<int>(row % shape.heads_q);
  const int query = static_cast<int>(row / shape.heads_q % shape.seq_q);
  const int batch = static_cast<int>(row / shape.heads_q / shape.seq_q);
  const int64_t k_offset = shape.k_row(batch, 0, head) * shape.pitch;

  Partial<kPerLane> partial;
  const int first = share * keys_per_share;
  const int end = min(first + keys_per_share, shape.visible_keys(query));
  attend<C>(partial, q + row * shape.pitch, k + k_offset, v + k_offset,
            shape.heads_kv * shape.pitch, first + warp_idx() * C::kKeys, end, C::kWarps * C::kKeys,
            shape.scale_log2);
  merge_warps<C>(partial, shape.scale_log2);
  if (warp_idx() != 0) return;
  const int64_t at = share * rows + row;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) {
    out.o[at * C::kHeadDim + lane_idx() + 32 * x] = partial.o[x];
  }
  if (lane_idx() == 0) out.max[at] = partial.max, out.sum[at] = partial.sum;
}

/// Merges the shares of a query row; one warp per row.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    combine_kernel(Shares in, typename C::Element* o, float* lse, Shape shape, int64_t rows,
                   int shares) {
  constexpr int kPerLane = C::kPerLane;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * C::kWarps + warp_idx();
  if (row >= rows) return;
  const int lane = lane_idx();
  Partial<kPerLane> partial;
  for (int share = 0; share < shares; ++share) {
    const int64_t at = share * rows + row;
    float other[kPerLane];
#pragma unroll
    for (int x = 0; x < kPerLane; ++x) other[x] = in.o[at * C::kHeadDim + lane + 32 * x];
    partial.merge(in.max[at], in.sum[at], other, shape.scale_log2);
  }
  const float inverse = partial.sum == 0.0f ? 0.0f : 1.0f / partial.sum;
#pragma unroll
  for (int x = 0; x < kPerLane; ++x) {
    o[row * shape.pitch + lane + 32 * x] = from_float<typename C::Element>(partial.o[x] * inverse);
  }
  if (lane == 0) {
    const int head = static_cast<int>(row % shape.heads_q);
    const int query = static_cast<int>(row / shape.heads_q % shape.seq_q);
    const int batch = static_cast<int>(row / shape.heads_q / shape.seq_q);
    lse[shape.lse_index(batch, query, head)] =
        partial.sum == 0.0f ? kMinusInfinity
                            : partial.max * shape.scale_log2 * kLn2 + logf(partial.sum);
  }
}

/// How the keys are divided into shares, and the workspace for them.
struct SharedOut {
  int shares = 1, keys_per_share = 1;
  int64_t rows = 0;  // query rows
  DeviceMemory memory;

  /// Shares for `blocks_per_share` blocks each, so that there are at least `wanted` blocks if
  /// possible. A share has at least `least_keys` keys and is a multiple of it.
  SharedOut(const Problem& p, int64_t blocks_per_share, int64_t wanted, int least_keys)
      : rows(p.q_rows()) {
    const int most = std::max(1, ceil_div(p.shape.seq_k, least_keys));
    const int64_t want = ceil_div(wanted, std::max<int64_t>(blocks_per_share, 1));
    const int blocks_per_query = static_cast<int>(std::clamp<int64_t>(want, 1, most));
    keys_per_share = least_keys * ceil_div(most, blocks_per_query);
    shares = std::max(1, ceil_div(p.shape.seq_k, keys_per_share));
    memory = DeviceMemory(sizeof(float) * static_cast<size_t>(shares * rows * (p.head_dim + 2)),
                          "shares");
  }
  Shares at(int head_dim) const {
    float* o = memory.as<float>();
    float* max = o + shares * rows * head_dim;
    return {o, max, max + shares * rows};
  }
};

struct Split : Level {
  static constexpr LevelText text{
      .name = "split",
      .changed = "keys divided among several blocks; a second kernel merges",
      .expect = "one sequence: all SMs read instead of heads_q of them; many sequences: no gain",
      .cost = "workspace of 4 (d + 2) bytes per share and query row, a second launch",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    SharedOut out;
  };
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    return {p, buffers, SharedOut(p, p.q_rows(), 4 * device_info().sm_count, 32)};
  }
  static Claims claims(const Problem& p) {
    const double keys = p.visible_pairs() * p.shape.batch * p.shape.heads_q;
    return {global_loads("k").bytes(2.0 * p.head_dim * keys, Relation::at_least),
            global_stores("o").in_kernel("combine").bytes(2.0 * p.head_dim *
                                                          static_cast<double>(p.q_rows()))};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    const SharedOut& out = plan.out;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = DecodeConfig<decltype(c)>;
      const Shares shares = out.at(C::kHeadDim);
      launch(split_kernel<C>, {static_cast<unsigned>(out.rows * out.shares), C::kThreads}, stream,
             q, k, v, shares, s, out.rows, out.keys_per_share);
      launch(combine_kernel<C>, {static_cast<unsigned>(ceil_div(out.rows, C::kWarps)), C::kThreads},
             stream, shares, o, plan.buffers.lse, s, out.rows, out.shares);
    });
  }
};

}  // namespace cookbook::attention
