// SPDX-License-Identifier: MIT
// Level 2: tensor cores (mma.sync), and one kernel. A block has 64 keys and walks over tiles of 64
// queries; dk and dv stay in its registers. Its contribution to a query's dq goes to fp32 sums in
// device memory by atomics, and a kernel after it rounds the sums. So s and dp are computed once:
// five matrix multiplications instead of seven.
#pragma once

#include "chapters/10_flash_attention/mma_tile.cuh"
#include "chapters/13_attention_backward/around.cuh"

namespace cookbook::attention::backward {

template <int kDim>
struct TensorCoresConfig : Case<bf16, kDim> {
  static constexpr int kThreads = 128;  // a warp has 16 queries of s, dp and dq, 16 keys of dk, dv
  static constexpr int kMTiles = 1, kBlockM = 64, kBlockN = 64;
  struct Smem {
    alignas(1024) unsigned char k[kBlockN * kDim * 2], v[kBlockN * kDim * 2];    // (keys, d)
    alignas(1024) unsigned char q[kBlockM * kDim * 2], d_o[kBlockM * kDim * 2];  // (queries, d)
    alignas(1024) unsigned char p[kBlockM * kBlockN * 2];                        // (queries, keys)
    alignas(1024) unsigned char ds[kBlockM * kBlockN * 2];
  };
};

/// For a multiplication with 64 columns at a time.
template <class C>
struct PanelOf : C {
  static constexpr int kHeadDim = kPanel;
};

/// What a block of keys walks over: the query tiles of its heads, from the first that sees a key.
struct QueryTiles {
  int first_head, first_tile, per_head, count;
};
/// The walk.
struct QueryCursor {
  int head, tile;

  __device__ __forceinline__ explicit QueryCursor(const QueryTiles& tiles)
      : head(tiles.first_head), tile(tiles.first_tile) {}
  __device__ __forceinline__ void advance(const QueryTiles& tiles) {
    if (++tile == tiles.first_tile + tiles.per_head) {
      tile = tiles.first_tile;
      ++head;
    }
  }
};
template <int kQueries>
__device__ __forceinline__ QueryTiles query_tiles_of(const Shape& shape, int kv_head,
                                                     int first_key) {
  const int group = shape.heads_q / shape.heads_kv;
  const int hidden = shape.causal ? first_key - (shape.seq_k - shape.seq_q) : 0;  // queries before
  const int first = max(0, hidden) / kQueries;
  const int per_head = max(0, (shape.seq_q + kQueries - 1) / kQueries - first);
  return {kv_head * group, first, per_head, group * per_head};
}

/// A block's place: a key tile of one head.
struct KeyTile {
  int first_key, kv_head, batch;
};
__device__ __forceinline__ KeyTile key_tile_of(int64_t index, int tiles, int block_n, int heads) {
  const int head_index = static_cast<int>(index / tiles);
  return {static_cast<int>(index % tiles) * block_n, head_index % heads, head_index / heads};
}

/// Stores 16 rows of dk or dv, from key `first_row` on; those from seq_k on do not exist.
/// `gradient`: the head's row 0; `stride`: elements between rows. Layout of `acc` as in chapter
/// 10's softmax.cuh.
template <int kCount>
__device__ __forceinline__ void store_gradient(bf16* gradient, int64_t stride, int first_row,
                                               int rows, const float (&acc)[kCount], float factor) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + lane_idx() / 4 + 8 * r;
    if (row >= rows) continue;
    bf16* to = gradient + row * stride + 2 * (lane_idx() % 4);
#pragma unroll
    for (int j = 0; j < kCount / 4; ++j) {
      store_vector(to + 8 * j, pack_pair<bf16>(acc[4 * j + 2 * r] * factor,
                                               acc[4 * j + 2 * r + 1] * factor));  // [store]
    }
  }
}

/// Adds 16 rows to the sums of dq. `sums`: the sum of row 0, column 0. Rows that do not exist are
/// padding.
template <int kHeadDim, int kCount>
__device__ __forceinline__ void add_to_sums(float* sums, const float (&acc)[kCount]) {
  float* const first = sums + lane_idx() / 4 * kHeadDim + 2 * (lane_idx() % 4);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    atomicAdd(first + row_of(i) * 8 * kHeadDim + key_of(i), acc[i]);  // [add]
  }
}

/// Stores packed accumulators of 16 rows, from `row` on, to a tile of kRows rows.
template <int kRows, int kColumns>
__device__ __forceinline__ void store_operand(unsigned char* tile, int row,
                                              const uint32_t (&a)[kColumns / 16][4]) {
  const int lane = lane_idx();
#pragma unroll
  for (int j = 0; j < kColumns / 16; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = row + lane / 4 + i % 2 * 8, column = 16 * j + i / 2 * 8 + 2 * (lane % 4);
      store_vector(tile + tile_offset<kRows>(at, column), a[j][i]);  // [operand]
    }
  }
}

/// A operands of the transpose of a tile of 64 rows: 16 of its columns, from `column` on.
__device__ __forceinline__ void load_transposed(uint32_t (&a)[1][4][4], const unsigned char* tile,
                                                int column) {
  const int lane = lane_idx();
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int row = 16 * j + lane / 16 * 8 + lane % 8;
    ldmatrix_x4_trans(a[0][j], tile + tile_offset<64>(row, column + lane / 8 % 2 * 8));
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    tensor_cores_kernel(const bf16* q, const bf16* k, const bf16* v, const bf16* d_o, bf16* dk,
                        bf16* dv, QueryStats stats, Shape shape, int key_tiles, float scale) {
  constexpr int kHeadDim = C::kHeadDim, kTile = 64;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp_row = warp_idx() * 16;  // of queries, and of keys
  const auto [first_key, kv_head, batch] =
      key_tile_of(blockIdx.x, key_tiles, kTile, shape.heads_kv);
  const QueryTiles tiles = query_tiles_of<kTile>(shape, kv_head, first_key);
  const int64_t q_stride = shape.heads_q * shape.pitch, k_stride = shape.heads_kv * shape.pitch;
  const int64_t k_head = shape.k_row(batch, 0, tiles.first_head) * shape.pitch;
  copy_tile_async<kTile, kHeadDim, C::kThreads>(smem.k, k + k_head, k_stride, first_key,
                                                shape.seq_k);
  copy_tile_async<kTile, kHeadDim, C::kThreads>(smem.v, v + k_head, k_stride, first_key,
                                                shape.seq_k);

  float dk_acc[1][kHeadDim / 2] = {}, dv_acc[1][kHeadDim / 2] = {};  // (16 keys, d) per warp
  QueryCursor at(tiles);
  for (int n = 0; n < tiles.count; ++n, at.advance(tiles)) {
    const int head = at.head, first_query = at.tile * kTile;
    const int64_t q_head = shape.q_row(batch, 0, head) * shape.pitch;
    copy_tile_async<kTile, kHeadDim, C::kThreads>(smem.q, q + q_head, q_stride, first_query,
                                                  shape.seq_q);
    copy_tile_async<kTile, kHeadDim, C::kThreads>(smem.d_o, d_o + q_head, q_stride, first_query,
                                                  shape.seq_q);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();

    // Step 1: s = q k^T and dp = do v^T.
    float s[1][kTile / 2] = {}, dp[1][kTile / 2] = {};  // (16 queries, keys) per warp
    mma_scores<C>(s, smem.q, smem.k, warp_row);
    mma_scores<C>(dp, smem.d_o, smem.v, warp_row);

    // Step 2: p and ds, rounded.
    mask_tile<kTile>(s[0], shape, first_query + warp_row, first_key);
    const int64_t stat = stats.at(batch, shape.heads_q, head, first_query + warp_row);
    const int g = lane_idx() / 4;
    const float lse[2] = {stats.lse[stat + g], stats.lse[stat + g + 8]};
    const float delta[2] = {stats.delta[stat + g], stats.delta[stat + g + 8]};
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i) {
      s[0][i] = ex2_approx_ftz(s[0][i] * shape.scale_log2 - lse[row_of(i)]);
      dp[0][i] = s[0][i] * (dp[0][i] - delta[row_of(i)]);
    }
    uint32_t p[1][kTile / 16][4], ds[1][kTile / 16][4];
    pack_weights<bf16>(p[0], s[0]);
    pack_weights<bf16>(ds[0], dp[0]);

    // Step 3: p and ds to shared memory, because a warp needs all queries of its keys for dv and
    // dk.
    store_operand<kTile, kTile>(smem.p, warp_row, p[0]);
    store_operand<kTile, kTile>(smem.ds, warp_row, ds[0]);

    // Step 4: dq += ds k, to device memory.
    // [quote atomics]
#pragma unroll
    for (int column = 0; column < kHeadDim; column += kPanel) {
      float dq[1][kPanel / 2] = {};  // (16 queries, 64 columns) per warp
      mma_output<PanelOf<C>>(dq, ds, smem.k + column / kPanel * kTile * 128);
      add_to_sums<kHeadDim>(stats.dq + stat * kHeadDim + column, dq[0]);
    }
    // [end quote]

    // Step 5: dv += p^T do and dk += ds^T q.
    __syncthreads();
    load_transposed(p, smem.p, warp_row);
    mma_output<C>(dv_acc, p, smem.d_o);
    load_transposed(ds, smem.ds, warp_row);
    mma_output<C>(dk_acc, ds, smem.q);
    __syncthreads();  // no thread reads the tiles any more
  }
  cp_async_commit();
  cp_async_wait<0>();  // where no query sees a key

  store_gradient(dk + k_head, k_stride, first_key + warp_row, shape.seq_k, dk_acc[0], scale);
  store_gradient(dv + k_head, k_stride, first_key + warp_row, shape.seq_k, dv_acc[0], 1);
}

struct TensorCores : Level {
  static constexpr LevelText text{
      .name = "tensor_cores",
      .changed = "mma.sync, five matrix multiplications; dq by atomics",
      .expect =
          "200 TFLOP/s: every operand passes through shared memory, and p and ds pass twice; the "
          "atomics take 4 bytes of L2 traffic per query, column and 64 keys",
      .cost = "fp32 sums of dq in device memory; dq differs from run to run in its last bits",
  };
  static constexpr bool same_every_run = false;  // atomics

  using Plan = PlanBase;
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("needs mma.sync m16n8k16: compute capability 8.0");
    return supports_aligned_rows(p.forward);
  }
  static Plan prepare(const Problem& p, const Buffers& at) { return {p, at, true}; }
  static Claims claims(const Problem&) {
    return {shared_loads().on("fragments").conflict_free(), faster_than_previous(6)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape();
    const Buffers& at = plan.buffers;
    plan.before(stream, true);
    with_head_dim(plan.problem, [&](auto d) {
      using C = TensorCoresConfig<decltype(d)::value>;
      const int key_tiles = ceil_div(s.seq_k, C::kBlockN);
      const dim3 grid(static_cast<unsigned>(int64_t{key_tiles} * s.heads_kv * s.batch));
      launch(tensor_cores_kernel<C>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, at.q,
             at.k, at.v, at.d_o, at.dk, at.dv, plan.stats(), s, key_tiles,
             gradient_scale(plan.problem));
    });
    plan.after(stream);
  }
};

}  // namespace cookbook::attention::backward
