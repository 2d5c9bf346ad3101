// SPDX-License-Identifier: MIT
// Exercise 13.1, a kernel with a planted bug: level 1, with its kernel for dk and dv written out.
// It is right where there are as many queries as keys. Which keys have a wrong gradient otherwise,
// and which queries are missing in it? Repair the line; tiles that no query needs must not be read.
#pragma once

#include "chapters/13_attention_backward/level_1_tiled.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct KeyGradientsConfig : TiledConfig<kDim> {
  using Base = TiledConfig<kDim>;
  static constexpr int kRowsPerPass = 8;  // a thread has 32 / 8 of the 32 x 32 pairs of a tile
  static constexpr int kThreads = Base::kTile * kRowsPerPass;
  static constexpr int kOwnRows = Base::kTile / (kThreads / 32);  // keys per warp
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    key_gradients_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dk,
                         bf16* dv, QueryStats stats, Shape shape, int key_tiles, float scale) {
  auto& smem = *dynamic_shared<typename C::Smem>();
  constexpr int kCount = C::kHeadDim / 32;
  const int first_key = static_cast<int>(blockIdx.x % key_tiles) * C::kTile;
  const int head_index = static_cast<int>(blockIdx.x / key_tiles);
  const int batch = head_index / shape.heads_kv, kv_head = head_index % shape.heads_kv;
  const int group = shape.heads_q / shape.heads_kv;
  copy_keys<C>(smem, k, v, shape, batch, kv_head * group, first_key);
  float dk_sum[C::kOwnRows][kCount] = {}, dv_sum[C::kOwnRows][kCount] = {};
  const int first_tile = ceil_div(first_query_of(shape, first_key), C::kTile) * C::kTile;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int first_query = first_tile; first_query < shape.seq_q; first_query += C::kTile) {
      copy_queries<C>(smem, q, d_o, stats, shape, batch, head, first_query);
      __syncthreads();
      compute_pairs<C>(smem, shape, first_query, first_key);
      __syncthreads();
      add_rows<C>(dv_sum, smem.d_o, [&](int j, int i) { return smem.p[i][j]; });
      add_rows<C>(dk_sum, smem.q, [&](int j, int i) { return smem.ds[i][j]; });
      __syncthreads();
    }
  }
#pragma unroll
  for (int r = 0; r < C::kOwnRows; ++r) {
    const int key = first_key + warp_idx() * C::kOwnRows + r;
    if (key >= shape.seq_k) break;
    const int64_t at = shape.k_row(batch, key, kv_head * group) * shape.pitch + kCount * lane_idx();
#pragma unroll
    for (int x = 0; x < kCount; ++x) {
      dk[at + x] = from_float<bf16>(dk_sum[r][x] * scale);
      dv[at + x] = from_float<bf16>(dv_sum[r][x]);
    }
  }
}

struct ExerciseKeyGradients : Tiled {
  static constexpr LevelText text{
      .name = "key_gradients",
      .changed = "level 1 with a bug in dk and dv",
      .expect =
          "every query that sees a key adds to its gradients, and no tile is read for nothing",
      .ladder = "backward_causal",
  };

  static Claims claims(const Problem& p) {
    const Shape& s = p.shape();
    double queries = 0;
    for (int first_key = 0; first_key < s.seq_k; first_key += 32) {
      const int first = s.causal ? std::max(0, first_key - (s.seq_k - s.seq_q)) : 0;
      queries += std::max(0, s.seq_q - first / 32 * 32);
    }
    return {global_loads("q")
                .in_kernel("key_gradients")
                .bytes(2.0 * p.head_dim() * queries * s.heads_q * s.batch),
            shared_loads().on("key").conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape();
    const Buffers& at = plan.buffers;
    plan.before(stream, false);
    with_head_dim(plan.problem, [&](auto d) {
      using C = KeyGradientsConfig<decltype(d)::value>;
      using Queries = TiledConfig<decltype(d)::value>;
      const int query_tiles = ceil_div(s.seq_q, C::kTile), key_tiles = ceil_div(s.seq_k, C::kTile);
      const float scale = gradient_scale(plan.problem);
      const auto grid = [&](int tiles, int heads) {
        return dim3(static_cast<unsigned>(int64_t{tiles} * heads * s.batch));
      };
      launch(query_tiles_kernel<Queries>,
             {grid(query_tiles, s.heads_q), Queries::kThreads, sizeof(typename Queries::Smem)},
             stream, at.q, at.k, at.v, at.d_o, at.dq, plan.stats(), s, query_tiles, scale);
      launch(key_gradients_kernel<C>,
             {grid(key_tiles, s.heads_kv), C::kThreads, sizeof(typename C::Smem)}, stream, at.q,
             at.k, at.v, at.d_o, at.dk, at.dv, plan.stats(), s, key_tiles, scale);
    });
  }
};

}  // namespace cookbook::attention::backward
