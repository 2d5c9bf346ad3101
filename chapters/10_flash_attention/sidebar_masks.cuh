// SPDX-License-Identifier: MIT
// Sidebar: variable lengths, block-sparse masks and index lists. The kernel is level 2's, with a
// policy that says which keys a query tile visits. Nothing else changes, because an online softmax
// works for any set of keys in any order.
#pragma once

#include "chapters/10_flash_attention/level_2_tensor_cores.cuh"
#include "chapters/10_flash_attention/sidebar_masks.hpp"

namespace cookbook::attention {

template <class CaseT>
struct MaskConfig : CaseT {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kMTiles = 1;
  static constexpr int kBlockM = 16 * kWarps;  // queries per block
  static constexpr int kBlockN = 64;           // keys per tile
  static_assert(kBlockM == MaskedProblem::kTile && kBlockN == MaskedProblem::kTile);
  using Smem = typename TensorCoresConfig<CaseT>::Smem;  // with more space for q than needed here
};

// A policy describes tile n of those that a query tile visits: which key is its column r (`key`),
// whether that key exists (`exists`), and how many of its columns query i sees (`visible`).

/// All keys of one of the packed sequences.
struct PackedKeys {
  int length, tiles;
  __device__ PackedKeys(const Shape&, const int* offsets, const int*, int, int b)
      : length(offsets[b + 1] - offsets[b]), tiles((length + 63) / 64) {}
  __device__ int64_t first_position(const Shape&, const int* offsets, int b) const {
    return offsets[b];
  }
  __device__ bool exists(int n, int r) const { return n * 64 + r < length; }
  __device__ int key(int n, int r) const { return n * 64 + r; }
  __device__ int visible(int n, int) const { return length - n * 64; }
};

/// Tiles of 64 keys from a list.
struct ListedTiles {
  int length, tiles;
  const int* list;
  __device__ ListedTiles(const Shape& shape, const int* offsets, const int* indices, int m, int)
      : length(shape.seq_k), tiles(offsets[m + 1] - offsets[m]), list(indices + offsets[m]) {}
  __device__ int64_t first_position(const Shape& shape, const int*, int b) const {
    return static_cast<int64_t>(b) * shape.seq_q;
  }
  __device__ bool exists(int n, int r) const { return key(n, r) < length; }
  __device__ int key(int n, int r) const { return list[n] * 64 + r; }
  __device__ int visible(int n, int) const { return length - list[n] * 64; }
};

/// Single keys from a list: the rows of a tile are gathered.
struct ListedKeys {
  int length, count, tiles;
  const int* list;
  __device__ ListedKeys(const Shape& shape, const int* offsets, const int* indices, int m, int)
      : length(shape.seq_k),
        count(offsets[m + 1] - offsets[m]),
        tiles((count + 63) / 64),
        list(indices + offsets[m]) {}
  __device__ int64_t first_position(const Shape& shape, const int*, int b) const {
    return static_cast<int64_t>(b) * shape.seq_q;
  }
  __device__ bool exists(int n, int r) const { return n * 64 + r < count; }
  __device__ int key(int n, int r) const { return list[n * 64 + r]; }
  __device__ int visible(int n, int) const { return count - n * 64; }
};

/// Copies the rows of tile n of the policy.
template <class C, class Keys, class T>
__device__ __forceinline__ void copy_listed(unsigned char* tile, const T* head, int64_t stride,
                                            const Keys& keys, int n) {
  constexpr int kChunks = C::kHeadDim / 8;
#pragma unroll 2
  for (int c = threadIdx.x; c < C::kBlockN * kChunks; c += C::kThreads) {
    const int row = c / kChunks, column = c % kChunks * 8;
    const bool exists = keys.exists(n, row);
    cp_async_zfill<16>(tile + tile_offset<C::kBlockN>(row, column),
                       head + (exists ? keys.key(n, row) * stride + column : 0), exists ? 16 : 0);
  }
}

template <class C, class Keys>
__global__ void __launch_bounds__(C::kThreads)
    masked_kernel(const typename C::Element* q, const typename C::Element* k,
                  const typename C::Element* v, typename C::Element* o, float* lse, Shape shape,
                  const int* offsets, const int* indices, int query_tiles) {
  using T = typename C::Element;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int warp_row = warp_idx() * 16, lane = lane_idx();
  const int m = static_cast<int>(blockIdx.x % query_tiles);
  const int head = static_cast<int>(blockIdx.x / query_tiles % shape.heads_q);
  const int batch = static_cast<int>(blockIdx.x / query_tiles / shape.heads_q);
  const Keys keys(shape, offsets, indices, m, batch);
  const int first_query = m * C::kBlockM;
  if (first_query >= keys.length) return;  // this sequence is shorter

  // From here on positions count from the start of the sequence.
  const int64_t position = keys.first_position(shape, offsets, batch);
  const int64_t q_stride = shape.heads_q * shape.pitch, k_stride = shape.heads_kv * shape.pitch;
  const int64_t k_offset = position * k_stride + shape.kv_head(head) * shape.pitch;
  const T* q_head = q + position * q_stride + head * shape.pitch;

  float acc[1][C::kHeadDim / 2] = {};  // (16 queries, d) per warp
  RowStates rows;
  copy_tile_async<C::kBlockM, C::kHeadDim, C::kThreads>(smem.q, q_head, q_stride, first_query,
                                                        keys.length);
  for (int n = keys.tiles - 1; n >= 0; --n) {
    __syncthreads();  // no thread reads the previous tile any more
    copy_listed<C>(smem.k, k + k_offset, k_stride, keys, n);
    copy_listed<C>(smem.v, v + k_offset, k_stride, keys, n);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    float s[1][C::kBlockN / 2] = {};  // (16 queries, keys) per warp
    mma_scores<C>(s, smem.q, smem.k, warp_row);
    const int query = first_query + warp_row + lane / 4;
    const int visible[2] = {keys.visible(n, query), keys.visible(n, query + 8)};
    mask_scores(s[0], visible);
    float rescale[2];
    uint32_t p[1][C::kBlockN / 16][4];
    online_softmax(s[0], rows, rescale, shape.scale_log2);
    scale_rows(acc[0], rescale);
    pack_weights<T>(p[0], s[0]);
    mma_output<C>(acc, p, smem.v);
  }
  cp_async_wait<0>();  // waits for the queries if there was no tile

  float inverse[2], row_lse[2];
  finish_rows(rows, shape.scale_log2, inverse, row_lse);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = first_query + warp_row + lane / 4 + 8 * r;
    if (query >= keys.length) continue;
    const int64_t row = (position + query) * shape.heads_q + head;
#pragma unroll
    for (int j = 0; j < C::kHeadDim / 8; ++j) {
      store_vector(
          o + row * shape.pitch + 8 * j + 2 * (lane % 4),
          pack_pair<T>(acc[0][4 * j + 2 * r] * inverse[r], acc[0][4 * j + 2 * r + 1] * inverse[r]));
    }
    if (lane % 4 == 0) lse[row] = row_lse[r];
  }
}

template <class Keys>
struct MaskedLevel : LevelOf<MaskedProblem, MaskedBuffers> {
  static constexpr const char* cost = "tiles of 64 queries; the list is read through L1";
  static Support supports(const MaskedProblem& p, const DeviceInfo& device) {
    return TensorCores::supports(p.dense, device);
  }
  static Claims claims(const MaskedProblem&) {
    return {shared_loads().on("fragments").conflict_free()};
  }
  static void run(const Plan& plan, Stream stream) {
    const MaskedBuffers& at = plan.buffers;
    const Shape& s = plan.problem.dense.shape;
    dispatch<bf16>(plan.problem.dense, at.dense, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = MaskConfig<decltype(c)>;
      const int query_tiles = ceil_div(s.seq_q, C::kBlockM);
      const dim3 grid(static_cast<unsigned>(int64_t{query_tiles} * s.heads_q * s.batch));
      launch(masked_kernel<C, Keys>, {grid, C::kThreads, sizeof(typename C::Smem)}, stream, q, k, v,
             o, at.dense.lse, s, at.offsets, at.indices, query_tiles);
    });
  }
};

struct VariableLengths : MaskedLevel<PackedKeys> {
  static constexpr LevelText text{
      .name = "variable_lengths",
      .changed = "packed sequences: a block looks up where its sequence begins",
      .expect = "work in proportion to the sum of squares of the lengths",
      .cost = cost,
  };
};
struct BlockSparse : MaskedLevel<ListedTiles> {
  static constexpr LevelText text{
      .name = "block_sparse",
      .changed = "key tiles from a list instead of all",
      .expect = "time in proportion to the listed tiles",
      .cost = cost,
  };
};
struct IndexList : MaskedLevel<ListedKeys> {
  static constexpr LevelText text{
      .name = "index_list",
      .changed = "single keys from a list, gathered row by row",
      .expect = "a row of K is 128 or 256 contiguous bytes: gathering costs indices, not sectors",
      .cost = cost,
  };
};

}  // namespace cookbook::attention
