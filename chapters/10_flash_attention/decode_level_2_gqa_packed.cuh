// SPDX-License-Identifier: MIT
// Decode, level 2: GQA packed. The query heads that share a KV head become rows of one tile; with
// several queries, their rows as well. K and V are then read once for all of them, and tensor cores
// compute the scores and the output. Each warp loads its own keys through its own ring of shared
// memory, so the loop has no barrier.
#pragma once

#include "chapters/10_flash_attention/decode_level_1_split.cuh"
#include "chapters/10_flash_attention/level_2_tensor_cores.cuh"  // group
#include "chapters/10_flash_attention/tile.cuh"

namespace cookbook::attention {

/// kTiles: tiles of 16 query rows per block. kStagesOf: steps in flight, per warp.
template <class CaseT, int kTiles, int kStagesOf = CaseT::kHeadDim == 128 ? 3 : 6, int kWarpsOf = 4>
struct GqaPackedConfig : CaseT {
  static constexpr int kWarps = kWarpsOf;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowTiles = kTiles;
  static constexpr int kRows = 16 * kTiles;  // (query, head) pairs of one KV head
  static constexpr int kBlockN = 16;         // keys per warp and step
  static constexpr int kStages = kStagesOf;
  static constexpr int kTileBytes = kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char q[kRows * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kWarps][kStages][kTileBytes];
    alignas(1024) unsigned char v[kWarps][kStages][kTileBytes];
  };
  static constexpr int kMergePitch = CaseT::kHeadDim + 8;
  struct Merge {  // replaces Smem after the loop
    float o[kWarps][kRows][kMergePitch];
    float max[kWarps][kRows], sum[kWarps][kRows];
  };
  static constexpr size_t kSmemBytes = sizeof(Smem) > sizeof(Merge) ? sizeof(Smem) : sizeof(Merge);
};

/// Calls f(Config{}) with the stages that this device has the shared memory for: GPUs with 99 KB
/// per block, such as an RTX 4090, hold two of 128 columns.
template <class CaseT, int kTiles, class F>
void with_stages(const F& f) {
  using Full = GqaPackedConfig<CaseT, kTiles>;
  if constexpr (Full::kSmemBytes > size_t{99} * 1024) {
    if (Full::kSmemBytes > device_info().smem_per_block_bytes) {
      return f(GqaPackedConfig<CaseT, kTiles, 2>{});
    }
  }
  f(Full{});
}

/// Which rows and keys a block has.
struct PackedBlock {
  int first_row, packed_rows;  // of the KV head: row r is query r / sharing of its head r % sharing
  int kv_head, batch, share;
  int sharing;  // query heads per KV head

  __device__ PackedBlock(const Shape& shape, int row_tiles, int rows_per_tile) {
    sharing = shape.heads_q / shape.heads_kv;
    packed_rows = shape.seq_q * sharing;
    first_row = static_cast<int>(blockIdx.x % row_tiles) * rows_per_tile;
    kv_head = static_cast<int>(blockIdx.x / row_tiles % shape.heads_kv);
    const int64_t rest = blockIdx.x / row_tiles / shape.heads_kv;
    batch = static_cast<int>(rest % shape.batch);
    share = static_cast<int>(rest / shape.batch);
  }
  __device__ int64_t q_row(const Shape& shape, int r) const {
    return shape.q_row(batch, r / sharing, kv_head * sharing + r % sharing);
  }
};

/// Copies 16 rows of one head to this warp's tile, 16 bytes per lane and step. Rows from `rows` on
/// become zero.
template <class C, class T>
__device__ __forceinline__ void copy_keys(unsigned char* tile, const T* head, int64_t stride,
                                          int first_row, int rows) {
  constexpr int kChunks = C::kHeadDim / 8;  // of 16 bytes, per row
#pragma unroll
  for (int c = 0; c < C::kBlockN * kChunks; c += 32) {
    const int row = (c + lane_idx()) / kChunks, column = (c + lane_idx()) % kChunks * 8;
    const bool exists = first_row + row < rows;
    cp_async_zfill<16>(tile + tile_offset<C::kBlockN>(row, column),
                       head + (exists ? (first_row + row) * stride + column : 0), exists ? 16 : 0);
  }
}

/// Computes the softmax of the block's rows over the keys of that share: store(r, partial) takes
/// that of row r of the KV head, in all lanes of a warp.
template <class C, class Store>
__device__ __forceinline__ void attend_packed(const typename C::Element* q,
                                              const typename C::Element* k,
                                              const typename C::Element* v, const Shape& shape,
                                              const PackedBlock& block, int keys_per_share,
                                              const Store& store) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockN = C::kBlockN, kStages = C::kStages;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int lane = lane_idx(), warp = warp_idx();
  const int first_row = block.first_row, packed_rows = block.packed_rows, sharing = block.sharing;

  // Step 1: this warp's steps are warp, warp + kWarps, ... of the block's keys.
  const int first_key = block.share * keys_per_share;
  const int last_query = min(first_row + C::kRows, packed_rows) - 1;
  const int end = min(first_key + keys_per_share, shape.visible_keys(last_query / sharing));
  const int all_steps = end <= first_key ? 0 : (end - first_key + kBlockN - 1) / kBlockN;
  const int steps = (all_steps - warp + C::kWarps - 1) / C::kWarps;
  const int64_t stride = shape.heads_kv * shape.pitch;
  const int64_t kv_offset = shape.k_row(block.batch, 0, block.kv_head * sharing) * shape.pitch;
  const auto key_of_step = [&](int step) {
    return first_key + (step * C::kWarps + warp) * kBlockN;
  };
  const auto copy = [&](int step) {
    if (step < steps) {
      const int stage = step % kStages;
      copy_keys<C>(smem.k[warp][stage], k + kv_offset, stride, key_of_step(step), end);
      copy_keys<C>(smem.v[warp][stage], v + kv_offset, stride, key_of_step(step), end);
    }
    cp_async_commit();  // even if it is empty: the waits count groups
  };
  // Step 2: the queries, which all warps read, and then this warp's first keys.
  constexpr int kChunks = kHeadDim / 8;  // of 16 bytes, per row
  for (int c = static_cast<int>(threadIdx.x); c < C::kRows * kChunks; c += C::kThreads) {
    const int row = c / kChunks, column = c % kChunks * 8;
    const bool exists = first_row + row < packed_rows;
    const T* from = q + (exists ? block.q_row(shape, first_row + row) * shape.pitch + column : 0);
    cp_async_zfill<16>(smem.q + tile_offset<C::kRows>(row, column), from, exists ? 16 : 0);
  }
  cp_async_commit();
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) copy(step);
  cp_async_wait<kStages - 1>();
  __syncthreads();

  float acc[C::kRowTiles][kHeadDim / 2] = {};  // (16 rows, d) per warp and tile
  RowStates states[C::kRowTiles];
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncwarp();              // this step's tile has arrived; no lane reads the previous one
    copy(step + kStages - 1);  // overwrites the previous step's tile
    const unsigned char* k_tile = smem.k[warp][step % kStages];
    const unsigned char* v_tile = smem.v[warp][step % kStages];
    // Step 3: scores of 16 rows and 16 keys per tile.
    float s[C::kRowTiles][kBlockN / 2] = {};
#pragma unroll 2  // unrolled whole, ptxas loads all operands first and runs out of registers
    for (int d = 0; d < kHeadDim / 16; ++d) {
      uint32_t b[4];
      ldmatrix_x4(
          b, k_tile + tile_offset<kBlockN>(lane / 16 * 8 + lane % 8, 16 * d + lane / 8 % 2 * 8));
#pragma unroll
      for (int t = 0; t < C::kRowTiles; ++t) {
        uint32_t a[4];
        ldmatrix_x4(a, smem.q + tile_offset<C::kRows>(16 * t + lane % 16, 16 * d + lane / 16 * 8));
        mma_m16n8k16<T>(group(s[t], 0), a, {b[0], b[1]});
        mma_m16n8k16<T>(group(s[t], 1), a, {b[2], b[3]});
      }
    }
    // Step 4: softmax.
    uint32_t p[C::kRowTiles][1][4];
#pragma unroll
    for (int t = 0; t < C::kRowTiles; ++t) {
      const int row = first_row + 16 * t + lane / 4, key = key_of_step(step);
      const int visible[2] = {min(end, shape.visible_keys(row / sharing)) - key,
                              min(end, shape.visible_keys((row + 8) / sharing)) - key};
      mask_scores(s[t], visible);
      float rescale[2];
      if (lazy_softmax<8>(s[t], states[t], rescale, shape.scale_log2)) scale_rows(acc[t], rescale);
      pack_weights<T>(p[t], s[t]);
    }
    // Step 5: output.
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 16) {
      uint32_t b[4];
      ldmatrix_x4_trans(b, v_tile + tile_offset<kBlockN>(lane % 16, d + lane / 16 * 8));
#pragma unroll
      for (int t = 0; t < C::kRowTiles; ++t) {
        mma_m16n8k16<T>(group(acc[t], d / 8), p[t][0], {b[0], b[1]});
        mma_m16n8k16<T>(group(acc[t], d / 8 + 1), p[t][0], {b[2], b[3]});
      }
    }
  }

  // Step 6: merge the warps' softmaxes through shared memory.
  cp_async_wait<0>();
  __syncthreads();
  auto& merge = *dynamic_shared<typename C::Merge>();
#pragma unroll
  for (int t = 0; t < C::kRowTiles; ++t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = 16 * t + lane / 4 + 8 * half;
      const float sum = warp_sum<4>(states[t].sum[half]);
      if (lane % 4 == 0) merge.max[warp][r] = states[t].max[half], merge.sum[warp][r] = sum;
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
        store_vector(&merge.o[warp][r][8 * j + 2 * (lane % 4)],
                     floatx2{acc[t][4 * j + 2 * half], acc[t][4 * j + 2 * half + 1]});
      }
    }
  }
  __syncthreads();
  constexpr int kPerLane = kHeadDim / 32;
  for (int r = warp; r < C::kRows && first_row + r < packed_rows; r += C::kWarps) {
    Partial<kPerLane> partial;
    for (int w = 0; w < C::kWarps; ++w) {
      float o[kPerLane];
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) o[x] = merge.o[w][r][x * 32 + lane];
      partial.merge(merge.max[w][r], merge.sum[w][r], o, shape.scale_log2);
    }
    store(first_row + r, partial);
  }
}

/// Writes what a block has of query row `row`; one warp.
template <class C>
__device__ __forceinline__ void store_share(const Shares& out, const Partial<C::kHeadDim / 32>& own,
                                            int64_t row, int share, int64_t rows) {
  const int64_t at = share * rows + row;
#pragma unroll
  for (int x = 0; x < C::kHeadDim / 32; ++x) {
    out.o[at * C::kHeadDim + x * 32 + lane_idx()] = own.o[x];
  }
  if (lane_idx() == 0) out.max[at] = own.max, out.sum[at] = own.sum;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    gqa_packed_kernel(const typename C::Element* q, const typename C::Element* k,
                      const typename C::Element* v, Shares out, Shape shape, int row_tiles,
                      int keys_per_share, int64_t rows) {
  const PackedBlock block(shape, row_tiles, C::kRows);
  attend_packed<C>(q, k, v, shape, block, keys_per_share, [&](int r, const auto& partial) {
    store_share<C>(out, partial, block.q_row(shape, r), block.share, rows);
  });
}

struct GqaPacked : Level {
  static constexpr LevelText text{
      .name = "gqa_packed",
      .changed = "query heads of one KV head as rows of one tensor-core tile",
      .expect =
          "K and V are read once: heads_q / heads_kv times fewer bytes, at the speed at which "
          "memory streams",
      .cost = "half of the tile's rows idle when 8 heads share",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    int row_tiles;
    SharedOut out;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("needs mma.sync m16n8k16: compute capability 8.0");
    return supports_aligned_rows(p);
  }
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    const Shape& s = p.shape;
    const int row_tiles = static_cast<int>(ceil_div(rows_of(p), 16));
    const int64_t blocks = int64_t{row_tiles} * s.heads_kv * s.batch;
    return {p, buffers, row_tiles, SharedOut(p, blocks, 4 * device_info().sm_count, 256)};
  }
  /// Query rows of a KV head.
  static int64_t rows_of(const Problem& p) {
    return int64_t{p.shape.seq_q} * (p.shape.heads_q / p.shape.heads_kv);
  }
  /// K and V are read once per tile of `rows` query rows, 16 bytes per lane.
  static Claims byte_claims(const Problem& p, int rows) {
    const double bytes =
        2.0 * p.head_dim * static_cast<double>(p.k_rows() * ceil_div(rows_of(p), rows));
    const Accesses k("global", "async_load", "k"), v("global", "async_load", "v");
    return {k.bytes(bytes, Relation::at_most), v.bytes(bytes, Relation::at_most),
            k.sectors_per_request(16), v.sectors_per_request(16)};
  }
  static Claims claims(const Problem& p) {
    Claims claims = byte_claims(p, 16);
    claims.push_back(faster_than_previous(2));
    return claims;
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    const SharedOut& out = plan.out;
    dispatch<bf16>(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using Combine = DecodeConfig<decltype(c)>;
      const Shares shares = out.at(Combine::kHeadDim);
      const int64_t blocks = int64_t{plan.row_tiles} * s.heads_kv * s.batch * out.shares;
      with_stages<decltype(c), 1>([&](auto config) {
        using C = decltype(config);
        launch(gqa_packed_kernel<C>, {static_cast<unsigned>(blocks), C::kThreads, C::kSmemBytes},
               stream, q, k, v, shares, s, plan.row_tiles, out.keys_per_share, out.rows);
      });
      launch(combine_kernel<Combine>,
             {static_cast<unsigned>(ceil_div(out.rows, Combine::kWarps)), Combine::kThreads},
             stream, shares, o, plan.buffers.lse, s, out.rows, out.shares);
    });
  }
};

}  // namespace cookbook::attention
