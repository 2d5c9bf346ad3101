// SPDX-License-Identifier: MIT
// Exercise 13.2, a design: level 2 adds dq to device memory by atomics. A request adds one
// accumulator per lane: 8 rows, and in each row 4 floats that are 8 bytes apart. So it touches 8
// sectors and uses half of each. Make it touch four whole sectors, with as many requests as before.
// Lanes may exchange accumulators before they add them.
#pragma once

#include "chapters/13_attention_backward/level_1_tiled.cuh"
#include "chapters/13_attention_backward/level_2_tensor_cores.cuh"

namespace cookbook::attention::backward {

/// Adds 16 rows of 64 columns to the sums of dq, as level 2 does: yours. A lane has rows g and g +
/// 8 (row_of says which) and, of every 8 columns, 2 (l % 4) and the next (key_of); g is l / 4.
template <int kHeadDim, int kCount>
__device__ __forceinline__ void add_whole_sectors(float* sums, const float (&acc)[kCount]) {
  const int g = lane_idx() / 4, column = 2 * (lane_idx() % 4);
#pragma unroll
  for (int i = 0; i < kCount; i += 2) {  // acc[i] and acc[i + 1] are neighbours in a row
    float* const to = sums + (g + row_of(i) * 8) * kHeadDim + column + key_of(i);
    atomicAdd(to, acc[i]);          // [add]
    atomicAdd(to + 1, acc[i + 1]);  // [add]
  }
}

/// Level 2's kernel without dk and dv: it computes dq only.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    whole_sectors_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o,
                         QueryStats stats, Shape shape, int key_tiles) {
  constexpr int kHeadDim = C::kHeadDim, kTile = 64;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp_row = warp_idx() * 16;  // of queries
  const auto [first_key, kv_head, batch] =
      key_tile_of(blockIdx.x, key_tiles, kTile, shape.heads_kv);
  const QueryTiles tiles = query_tiles_of<kTile>(shape, kv_head, first_key);
  const auto copy = [&](unsigned char* tile, const bf16* from, int64_t row, int heads, int first,
                        int rows) {
    copy_tile_async<kTile, kHeadDim, C::kThreads>(tile, from + row * shape.pitch,
                                                  heads * shape.pitch, first, rows);
  };
  const int64_t k_head = shape.k_row(batch, 0, tiles.first_head);
  copy(smem.k, k, k_head, shape.heads_kv, first_key, shape.seq_k);
  copy(smem.v, v, k_head, shape.heads_kv, first_key, shape.seq_k);
  QueryCursor at(tiles);
  for (int n = 0; n < tiles.count; ++n, at.advance(tiles)) {
    const int first_query = at.tile * kTile;
    const int64_t q_head = shape.q_row(batch, 0, at.head);
    copy(smem.q, q, q_head, shape.heads_q, first_query, shape.seq_q);
    copy(smem.d_o, d_o, q_head, shape.heads_q, first_query, shape.seq_q);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();

    float s[1][kTile / 2] = {}, dp[1][kTile / 2] = {};  // (16 queries, keys) per warp
    mma_scores<C>(s, smem.q, smem.k, warp_row);
    mma_scores<C>(dp, smem.d_o, smem.v, warp_row);
    mask_tile<kTile>(s[0], shape, first_query + warp_row, first_key);
    const int64_t stat = stats.at(batch, shape.heads_q, at.head, first_query + warp_row);
    const int64_t own = stat + lane_idx() / 4;
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i) {
      const int64_t row = own + row_of(i) * 8;
      const float p = ex2_approx_ftz(s[0][i] * shape.scale_log2 - stats.lse[row]);
      dp[0][i] = p * (dp[0][i] - stats.delta[row]);
    }
    uint32_t ds[1][kTile / 16][4];
    pack_weights<bf16>(ds[0], dp[0]);
#pragma unroll
    for (int column = 0; column < kHeadDim; column += kPanel) {
      float dq[1][kPanel / 2] = {};  // (16 queries, 64 columns) per warp
      mma_output<PanelOf<C>>(dq, ds, smem.k + column / kPanel * kTile * 128);
      add_whole_sectors<kHeadDim>(stats.dq + stat * kHeadDim + column, dq[0]);
    }
    __syncthreads();  // no thread reads the tiles any more
  }
  cp_async_commit();
  cp_async_wait<0>();  // where no query sees a key
}

struct ExerciseWholeSectors : TensorCores {
  static constexpr LevelText text{
      .name = "whole_sectors",
      .changed = "level 2 with atomics that you arrange; dk and dv are level 1's",
      .expect = "half the sectors of level 2's atomics, in as many requests",
      .cost = "a shuffle per two accumulators",
      .ladder = "backward_causal",
  };

  static Claims claims(const Problem& p) {
    const Shape& s = p.shape();
    double tiles = 0;
    for (int first_key = 0; first_key < s.seq_k; first_key += 64) {
      const int first = s.causal ? std::max(0, first_key - (s.seq_k - s.seq_q)) : 0;
      tiles += std::max(0, ceil_div(s.seq_q, 64) - first / 64);
    }
    return {global_atomics("dq_sums").coalesced(),
            global_atomics("dq_sums").requests(tiles * s.heads_q * s.batch * 2 * p.head_dim())};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    const Support tiled = Tiled::supports(p, device);
    return tiled ? TensorCores::supports(p, device) : tiled;
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape();
    const Buffers& at = plan.buffers;
    plan.before(stream, true);
    with_head_dim(plan.problem, [&](auto d) {
      using C = TensorCoresConfig<decltype(d)::value>;
      using Keys = TiledConfig<decltype(d)::value>;
      const int key_tiles = ceil_div(s.seq_k, 64), own_tiles = ceil_div(s.seq_k, Keys::kTile);
      const auto grid = [&](int tiles) {
        return dim3(static_cast<unsigned>(int64_t{tiles} * s.heads_kv * s.batch));
      };
      launch(whole_sectors_kernel<C>, {grid(key_tiles), C::kThreads, sizeof(typename C::Smem)},
             stream, at.q, at.k, at.v, at.d_o, plan.stats(), s, key_tiles);
      launch(key_tiles_kernel<Keys>, {grid(own_tiles), Keys::kThreads, sizeof(typename Keys::Smem)},
             stream, at.q, at.k, at.v, at.d_o, at.dk, at.dv, plan.stats(), s, own_tiles,
             gradient_scale(plan.problem));
    });
    plan.after(stream);
  }
};

}  // namespace cookbook::attention::backward
