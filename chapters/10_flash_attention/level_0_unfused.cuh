// SPDX-License-Identifier: MIT
// Level 0: attention as it is written on paper: three kernels, with the matrix of scores in memory
// between them.
//
//   scores:   S = Q K^T            [batch, heads, seq_q, seq_k] fp32, in device memory
//   softmax:  P = softmax(S), in place
//   output:   O = P V
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"

namespace cookbook::attention {

template <class CaseT>
struct UnfusedConfig : CaseT {
  static constexpr int kTile = 32;  // a block computes 32 x 32 elements, a thread 4 of them
  static constexpr int kRowsPerPass = 8;
  static constexpr int kThreads = kTile * kRowsPerPass;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    scores_kernel(const typename C::Element* q, const typename C::Element* k, float* scores,
                  Shape shape, int query_tiles, int key_tiles) {
  constexpr int kTile = C::kTile;
  __shared__ float q_tile[kTile][kTile + 1];  // (queries, d)
  __shared__ float k_tile[kTile][kTile + 1];  // (keys, d)

  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const int first_key = static_cast<int>(blockIdx.x % key_tiles) * kTile;
  const int first_query = static_cast<int>(blockIdx.x / key_tiles % query_tiles) * kTile;
  const int head_index = static_cast<int>(blockIdx.x / key_tiles / query_tiles);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;

  float sum[kTile / C::kRowsPerPass] = {};  // one per query y, y + 8, y + 16, y + 24
  for (int d = 0; d < C::kHeadDim; d += kTile) {
    for (int row = y; row < kTile; row += C::kRowsPerPass) {
      const int i = first_query + row, j = first_key + row;
      q_tile[row][x] = i < shape.seq_q
                           ? to_float(q[shape.q_row(batch, i, head) * shape.pitch + d + x])
                           : 0;  // [q]
      k_tile[row][x] = j < shape.seq_k
                           ? to_float(k[shape.k_row(batch, j, head) * shape.pitch + d + x])
                           : 0;  // [k]
    }
    __syncthreads();
    for (int inner = 0; inner < kTile; ++inner) {
      const float key = k_tile[x][inner];
      for (int n = 0; n < kTile / C::kRowsPerPass; ++n) {
        sum[n] += q_tile[y + n * C::kRowsPerPass][inner] * key;
      }
    }
    __syncthreads();
  }
  for (int n = 0; n < kTile / C::kRowsPerPass; ++n) {
    const int i = first_query + y + n * C::kRowsPerPass, j = first_key + x;
    if (i < shape.seq_q && j < shape.seq_k) {
      const int64_t row = static_cast<int64_t>(head_index) * shape.seq_q + i;
      // [quote unfused]
      scores[row * shape.seq_k + j] = j < shape.visible_keys(i) ? sum[n] : kMinusInfinity;
      // [end quote]
    }
  }
}

/// One warp per row: maximum, sum, division: three passes over the row.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    softmax_kernel(float* scores, float* lse, Shape shape, int64_t rows) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (C::kThreads / 32) + warp_idx();
  if (row >= rows) return;
  float* s = scores + row * shape.seq_k;
  float max = kMinusInfinity, sum = 0;
  for (int j = lane_idx(); j < shape.seq_k; j += 32) max = fmaxf(max, s[j]);
  max = warp_max(max);
  const float offset = max == kMinusInfinity ? 0.0f : max * shape.scale_log2;
  for (int j = lane_idx(); j < shape.seq_k; j += 32) {
    s[j] = ex2_approx_ftz(s[j] * shape.scale_log2 - offset);
    sum += s[j];
  }
  sum = warp_sum(sum);
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (int j = lane_idx(); j < shape.seq_k; j += 32) s[j] *= inverse;
  if (lane_idx() == 0) lse[row] = sum == 0.0f ? kMinusInfinity : offset * kLn2 + logf(sum);
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    output_kernel(const float* weights, const typename C::Element* v, typename C::Element* o,
                  Shape shape, int query_tiles) {
  constexpr int kTile = C::kTile, kColumnTiles = C::kHeadDim / kTile;
  __shared__ float p_tile[kTile][kTile];  // (queries, keys)
  __shared__ float v_tile[kTile][kTile];  // (keys, d)

  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const int column = static_cast<int>(blockIdx.x % kColumnTiles) * kTile + x;
  const int first_query = static_cast<int>(blockIdx.x / kColumnTiles % query_tiles) * kTile;
  const int head_index = static_cast<int>(blockIdx.x / kColumnTiles / query_tiles);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  const float* p = weights + static_cast<int64_t>(head_index) * shape.seq_q * shape.seq_k;

  float sum[kTile / C::kRowsPerPass] = {};  // one per query y, y + 8, y + 16, y + 24
  for (int first_key = 0; first_key < shape.seq_k; first_key += kTile) {
    for (int row = y; row < kTile; row += C::kRowsPerPass) {
      const int i = first_query + row, j = first_key + row;
      const bool exists = i < shape.seq_q && first_key + x < shape.seq_k;
      p_tile[row][x] = exists ? p[static_cast<int64_t>(i) * shape.seq_k + first_key + x] : 0;
      v_tile[row][x] =
          j < shape.seq_k ? to_float(v[shape.k_row(batch, j, head) * shape.pitch + column]) : 0;
    }
    __syncthreads();
    for (int inner = 0; inner < kTile; ++inner) {
      const float value = v_tile[inner][x];
      for (int n = 0; n < kTile / C::kRowsPerPass; ++n) {
        sum[n] += p_tile[y + n * C::kRowsPerPass][inner] * value;
      }
    }
    __syncthreads();
  }
  for (int n = 0; n < kTile / C::kRowsPerPass; ++n) {
    const int i = first_query + y + n * C::kRowsPerPass;
    if (i < shape.seq_q) {
      o[shape.q_row(batch, i, head) * shape.pitch + column] =
          from_float<typename C::Element>(sum[n]);
    }
  }
}

struct Unfused : Level {
  static constexpr LevelText text{
      .name = "unfused",
      .changed = "three kernels: scores, softmax, output; scores in memory",
      .expect =
          "memory-bound at long sequences: the scores are written once, read three times and "
          "written twice by the softmax, and read once more, 4 bytes each",
      .cost = "4 * batch * heads_q * seq_q * seq_k bytes of workspace",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    DeviceMemory scores;
  };
  static size_t workspace_bytes(const Shape& s) {
    return sizeof(float) * s.batch * s.heads_q * static_cast<size_t>(s.seq_q) * s.seq_k;
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    const size_t bytes = workspace_bytes(p.shape);
    if (bytes <= device.memory_bytes / 2) return Support::yes();
    return Support::no("the scores alone take " + std::to_string(bytes >> 30) + " GiB");
  }
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    return {p, buffers, DeviceMemory(workspace_bytes(p.shape), "scores")};
  }
  static Claims claims(const Problem& p) {
    const double scores = static_cast<double>(workspace_bytes(p.shape));
    return {global_stores("scores").in_kernel("scores_kernel").bytes(scores),
            global_loads("scores").in_kernel("softmax_kernel").bytes(3 * scores)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = UnfusedConfig<decltype(c)>;
      float* scores = plan.scores.template as<float>();
      const int query_tiles = ceil_div(s.seq_q, C::kTile), key_tiles = ceil_div(s.seq_k, C::kTile);
      const int64_t heads = int64_t{s.batch} * s.heads_q, rows = heads * s.seq_q;
      const dim3 block(C::kThreads);
      const auto grid = [](int64_t blocks) { return dim3(static_cast<unsigned>(blocks)); };
      launch(scores_kernel<C>, {grid(heads * query_tiles * key_tiles), block}, stream, q, k, scores,
             s, query_tiles, key_tiles);
      launch(softmax_kernel<C>, {grid(ceil_div(rows, C::kThreads / 32)), block}, stream, scores,
             plan.buffers.lse, s, rows);
      launch(output_kernel<C>, {grid(heads * query_tiles * (C::kHeadDim / C::kTile)), block},
             stream, scores, v, o, s, query_tiles);
    });
  }
};

}  // namespace cookbook::attention
