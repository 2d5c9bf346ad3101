// SPDX-License-Identifier: MIT
// Level 1: tiles. A block keeps 32 rows (queries for dq, keys for dk and dv) and walks over tiles
// of 32 of the others. p and ds of a tile are computed once, from shared memory, and stay there:
// they are never in device memory. Still two kernels, so still seven matrix multiplications.
#pragma once

#include "chapters/13_attention_backward/level_0_rows.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct TiledConfig {
  static constexpr int kHeadDim = kDim;
  static constexpr int kTile = 32, kRowsPerPass = 8;  // a thread has 4 of a tile's 32 x 32 pairs
  static constexpr int kThreads = kTile * kRowsPerPass;
  static constexpr int kOwnRows = kTile / (kThreads / 32);  // rows of a gradient per warp
  // Four floats more than a row: 16-byte reads of 32 rows at one column hit all banks evenly.
  static constexpr int kPitch = kDim + 4;
  struct Smem {
    float q[kTile][kPitch], d_o[kTile][kPitch];       // (queries, d)
    float k[kTile][kPitch], v[kTile][kPitch];         // (keys, d)
    float p[kTile][kTile + 1], ds[kTile][kTile + 1];  // (queries, keys)
    float lse[kTile], delta[kTile];
  };
};

/// Copies rows first .. first + 31 of one head; rows from `rows` on become zero. `source`: the
/// head's row 0; `stride`: elements between rows.
template <class C>
__device__ __forceinline__ void copy_tile(float (&tile)[C::kTile][C::kPitch], const bf16* source,
                                          int64_t stride, int first, int rows) {
  for (int i = threadIdx.x; i < C::kTile * C::kHeadDim; i += C::kThreads) {
    const int row = i / C::kHeadDim, x = i % C::kHeadDim;
    tile[row][x] = first + row < rows ? to_float(source[(first + row) * stride + x]) : 0;
  }
}

/// As above, the 32 queries' numbers.
template <class C>
__device__ __forceinline__ void copy_queries(typename C::Smem& smem, const bf16* q, const bf16* d_o,
                                             const QueryStats& stats, const Shape& shape, int batch,
                                             int head, int first) {
  const int64_t at = shape.q_row(batch, 0, head) * shape.pitch;
  const int64_t stride = shape.heads_q * shape.pitch;
  copy_tile<C>(smem.q, q + at, stride, first, shape.seq_q);
  copy_tile<C>(smem.d_o, d_o + at, stride, first, shape.seq_q);
  if (threadIdx.x < C::kTile) {
    const int64_t stat = stats.at(batch, shape.heads_q, head, first + threadIdx.x);
    smem.lse[threadIdx.x] = stats.lse[stat];
    smem.delta[threadIdx.x] = stats.delta[stat];
  }
}

template <class C>
__device__ __forceinline__ void copy_keys(typename C::Smem& smem, const bf16* k, const bf16* v,
                                          const Shape& shape, int batch, int head, int first) {
  const int64_t at = shape.k_row(batch, 0, head) * shape.pitch;
  const int64_t stride = shape.heads_kv * shape.pitch;
  copy_tile<C>(smem.k, k + at, stride, first, shape.seq_k);
  copy_tile<C>(smem.v, v + at, stride, first, shape.seq_k);
}

/// p and ds of a tile. A lane has a key and four queries, so that one read of a key serves four.
template <class C>
__device__ __forceinline__ void compute_pairs(typename C::Smem& smem, const Shape& shape,
                                              int first_query, int first_key) {
  constexpr int kEach = C::kTile / C::kRowsPerPass;
  const int x = threadIdx.x % C::kTile, y = threadIdx.x / C::kTile;
  float s[kEach] = {}, dp[kEach] = {};
  for (int c = 0; c < C::kHeadDim; c += 4) {
    const auto key = load_vector<floatx4>(&smem.k[x][c]);    // [key]
    const auto value = load_vector<floatx4>(&smem.v[x][c]);  // [key]
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const auto query = load_vector<floatx4>(&smem.q[y + n * C::kRowsPerPass][c]);    // [query]
      const auto d_out = load_vector<floatx4>(&smem.d_o[y + n * C::kRowsPerPass][c]);  // [query]
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[n] += query[i] * key[i];
        dp[n] += d_out[i] * value[i];
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kEach; ++n) {
    const int row = y + n * C::kRowsPerPass;
    const bool visible = first_key + x < shape.visible_keys(first_query + row);
    // [quote tiled]
    const float p = visible ? ex2_approx_ftz(s[n] * shape.scale_log2 - smem.lse[row]) : 0;
    smem.p[row][x] = p;
    smem.ds[row][x] = p * (dp[n] - smem.delta[row]);
    // [end quote]
  }
}

/// sum[r] += sum over the tile of weight(own row of the warp + r, other row) * other row.
template <class C, class Weight>
__device__ __forceinline__ void add_rows(float (&sum)[C::kOwnRows][C::kHeadDim / 32],
                                         const float (&others)[C::kTile][C::kPitch],
                                         const Weight& weight) {
  constexpr int kCount = C::kHeadDim / 32;
  const int first = warp_idx() * C::kOwnRows;
  for (int j = 0; j < C::kTile; ++j) {
    const auto other = load_vector<Pack<float, kCount>>(&others[j][kCount * lane_idx()]);
#pragma unroll
    for (int r = 0; r < C::kOwnRows; ++r) {
      const float factor = weight(first + r, j);
#pragma unroll
      for (int x = 0; x < kCount; ++x) sum[r][x] += factor * other[x];
    }
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    query_tiles_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dq,
                       QueryStats stats, Shape shape, int query_tiles, float scale) {
  auto& smem = *dynamic_shared<typename C::Smem>();
  constexpr int kCount = C::kHeadDim / 32;
  const int first_query = static_cast<int>(blockIdx.x % query_tiles) * C::kTile;
  const int head_index = static_cast<int>(blockIdx.x / query_tiles);
  const int batch = head_index / shape.heads_q, head = head_index % shape.heads_q;
  copy_queries<C>(smem, q, d_o, stats, shape, batch, head, first_query);
  float sum[C::kOwnRows][kCount] = {};
  const int keys = shape.visible_keys(min(first_query + C::kTile, shape.seq_q) - 1);
  for (int first_key = 0; first_key < keys; first_key += C::kTile) {
    copy_keys<C>(smem, k, v, shape, batch, head, first_key);
    __syncthreads();
    compute_pairs<C>(smem, shape, first_query, first_key);
    __syncthreads();
    add_rows<C>(sum, smem.k, [&](int i, int j) { return smem.ds[i][j]; });
    __syncthreads();  // no thread reads the tile any more
  }
#pragma unroll
  for (int r = 0; r < C::kOwnRows; ++r) {
    const int query = first_query + warp_idx() * C::kOwnRows + r;
    if (query >= shape.seq_q) break;
    bf16* row = dq + shape.q_row(batch, query, head) * shape.pitch + kCount * lane_idx();
#pragma unroll
    for (int x = 0; x < kCount; ++x) row[x] = from_float<bf16>(sum[r][x] * scale);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    key_tiles_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dk,
                     bf16* dv, QueryStats stats, Shape shape, int key_tiles, float scale) {
  auto& smem = *dynamic_shared<typename C::Smem>();
  constexpr int kCount = C::kHeadDim / 32;
  const int first_key = static_cast<int>(blockIdx.x % key_tiles) * C::kTile;
  const int head_index = static_cast<int>(blockIdx.x / key_tiles);
  const int batch = head_index / shape.heads_kv, kv_head = head_index % shape.heads_kv;
  const int group = shape.heads_q / shape.heads_kv;
  copy_keys<C>(smem, k, v, shape, batch, kv_head * group, first_key);
  float dk_sum[C::kOwnRows][kCount] = {}, dv_sum[C::kOwnRows][kCount] = {};
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const int first_tile = first_query_of(shape, first_key) / C::kTile * C::kTile;
    for (int first_query = first_tile; first_query < shape.seq_q; first_query += C::kTile) {
      copy_queries<C>(smem, q, d_o, stats, shape, batch, head, first_query);
      __syncthreads();
      compute_pairs<C>(smem, shape, first_query, first_key);
      __syncthreads();
      add_rows<C>(dv_sum, smem.d_o, [&](int j, int i) { return smem.p[i][j]; });
      add_rows<C>(dk_sum, smem.q, [&](int j, int i) { return smem.ds[i][j]; });
      __syncthreads();  // no thread reads the tile any more
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

struct Tiled : Level {
  static constexpr LevelText text{
      .name = "tiled",
      .changed = "tiles of 32 x 32 pairs in shared memory",
      .expect =
          "a row that is loaded serves 32 others, and no reduction over lanes is left: bound by "
          "reads of shared memory, one of 16 bytes per 8 or 16 multiply-adds",
      .cost = "76 KB of shared memory at head dimension 128",
  };

  using Plan = PlanBase;
  static Support supports(const Problem& p, const DeviceInfo& device) {
    const size_t bytes =
        p.head_dim() == 64 ? sizeof(TiledConfig<64>::Smem) : sizeof(TiledConfig<128>::Smem);
    if (bytes <= device.smem_per_block_bytes) return Support::yes();
    return Support::no("needs " + std::to_string(bytes) + " bytes of shared memory per block");
  }
  static Plan prepare(const Problem& p, const Buffers& at) { return {p, at, false}; }
  static Claims claims(const Problem&) {
    return {shared_loads().on("key").conflict_free(), shared_loads().on("query").conflict_free(),
            faster_than_previous(2.3)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape();
    const Buffers& at = plan.buffers;
    plan.before(stream, false);
    with_head_dim(plan.problem, [&](auto d) {
      using C = TiledConfig<decltype(d)::value>;
      const int query_tiles = ceil_div(s.seq_q, C::kTile), key_tiles = ceil_div(s.seq_k, C::kTile);
      const float scale = gradient_scale(plan.problem);
      const auto grid = [&](int tiles, int heads) {
        return dim3(static_cast<unsigned>(int64_t{tiles} * heads * s.batch));
      };
      launch(query_tiles_kernel<C>,
             {grid(query_tiles, s.heads_q), C::kThreads, sizeof(typename C::Smem)}, stream, at.q,
             at.k, at.v, at.d_o, at.dq, plan.stats(), s, query_tiles, scale);
      launch(key_tiles_kernel<C>,
             {grid(key_tiles, s.heads_kv), C::kThreads, sizeof(typename C::Smem)}, stream, at.q,
             at.k, at.v, at.d_o, at.dk, at.dv, plan.stats(), s, key_tiles, scale);
    });
  }
};

}  // namespace cookbook::attention::backward
