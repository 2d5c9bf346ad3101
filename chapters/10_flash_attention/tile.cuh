// SPDX-License-Identifier: MIT
// Addresses of a tile's elements in shared memory, and how a block loads and stores rows.
//
// Every 16-bit tile of the chapter, [rows][kHeadDim], is stored as panels of 64 columns. Panel c
// holds columns 64c .. 64c + 63 of all rows, 128 bytes per row, with the 128-byte swizzle (chapter
// 7). TMA writes this layout with a box of 64 columns, wgmma reads it, and ldmatrix reads it
// without bank conflicts.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/softmax.cuh"
#include "common/device/cp_async.cuh"
#include "common/device/cuda.cuh"
#include "common/device/swizzle.cuh"
#include "common/device/vector.cuh"

namespace cookbook::attention {

inline constexpr int kPanel = 64;  // columns

/// Byte offset of element (row, column) in a tile of kRows rows.
template <int kRows>
__device__ __forceinline__ uint32_t tile_offset(int row, int column) {
  return (column / kPanel) * kRows * 128 +
         swizzle_address<Swizzle::b128>(row * 128 + column % kPanel * 2);
}

/// The query tile and the head that a block computes. Consecutive blocks compute tiles of the same
/// head, so blocks that run at the same time read the same keys.
struct QueryTile {
  int first_query, head, batch;
};
__device__ __forceinline__ QueryTile tile_index(int64_t index, int query_tiles, int block_m,
                                                int heads) {
  const int head_index = static_cast<int>(index / query_tiles);
  return {static_cast<int>(index % query_tiles) * block_m, head_index % heads, head_index / heads};
}

/// Tiles of kBlockN keys that a tile of kBlockM queries must visit: [0, count). The others are
/// masked for all of its rows.
template <int kBlockM, int kBlockN>
__device__ __forceinline__ int key_tiles(const Shape& shape, int first_query) {
  const int last_query = min(first_query + kBlockM, shape.seq_q) - 1;
  const int visible = shape.visible_keys(last_query);
  return visible <= 0 ? 0 : (visible + kBlockN - 1) / kBlockN;
}

/// Copies rows first_row .. first_row + kRows - 1 of one head to a tile with 16-byte cp.async. Rows
/// from `rows` on become zero. `source`: the head's row 0; `stride`: elements between rows.
template <int kRows, int kHeadDim, int kThreads, class T>
__device__ __forceinline__ void copy_tile_async(unsigned char* tile, const T* source,
                                                int64_t stride, int first_row, int rows) {
  constexpr int kChunks = kHeadDim / 8;  // of 16 bytes, per row
#pragma unroll 2
  for (int c = threadIdx.x; c < kRows * kChunks; c += kThreads) {
    const int row = c / kChunks, column = c % kChunks * 8;
    const bool exists = first_row + row < rows;
    const T* from = source + (exists ? (first_row + row) * stride + column : 0);
    cp_async_zfill<16>(tile + tile_offset<kRows>(row, column), from, exists ? 16 : 0);  // [copy]
  }
}

/// Masks the keys of a tile of kBlockN that the warp's 16 queries, from `first_query` on, do not
/// see.
template <int kBlockN>
__device__ __forceinline__ void mask_tile(float (&s)[kBlockN / 2], const Shape& shape,
                                          int first_query, int first_key) {
  if (first_key + kBlockN <= shape.visible_keys(first_query)) return;  // every query sees every key
  const int query = first_query + lane_idx() / 4;
  const int visible[2] = {shape.visible_keys(query) - first_key,
                          shape.visible_keys(query + 8) - first_key};
  mask_scores(s, visible);
}

/// Stores this thread's part of 16 output rows, o * inverse, and their log-sum-exp. `first_row` is
/// the query of row g; rows from seq_q on are not stored. kCount / 4 groups of 8 columns.
template <class T, int kCount>
__device__ __forceinline__ void store_rows(T* o, float* lse, const Shape& shape, int batch,
                                           int head, int first_row, const float (&acc)[kCount],
                                           const float (&inverse)[2], const float (&row_lse)[2]) {
  const int lane = lane_idx();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = first_row + lane / 4 + 8 * r;
    if (query < shape.seq_q) {
      T* row = o + shape.q_row(batch, query, head) * shape.pitch + 2 * (lane % 4);
#pragma unroll
      for (int j = 0; j < kCount / 4; ++j) {
        const float low = acc[4 * j + 2 * r] * inverse[r],
                    high = acc[4 * j + 2 * r + 1] * inverse[r];
        store_vector(row + 8 * j, pack_pair<T>(low, high));  // [store]
      }
      if (lane % 4 == 0) lse[shape.lse_index(batch, query, head)] = row_lse[r];
    }
  }
}

/// Transposes a quad's 4 x 4 words: lane t's word i becomes lane i's word t.
__device__ __forceinline__ void transpose_quad(uint32_t (&words)[4], int lane) {
  const auto exchange = [&words](bool second, int i, int distance) {
    const uint32_t give = second ? words[i] : words[i + distance];
    const uint32_t got = __shfl_xor_sync(kFullWarp, give, distance);
    (second ? words[i] : words[i + distance]) = got;
  };
  exchange(lane & 1, 0, 1);
  exchange(lane & 1, 2, 1);
  exchange(lane & 2, 0, 2);
  exchange(lane & 2, 1, 2);
}

/// As store_rows, 16 bytes at a time. A quad holds 32 columns of a row as words of two columns.
/// After the transpose each lane holds four neighbouring words. kCount is a multiple of 16.
template <class T, int kCount>
__device__ __forceinline__ void store_rows_wide(T* o, float* lse, const Shape& shape, int batch,
                                                int head, int first_row, const float (&acc)[kCount],
                                                const float (&inverse)[2],
                                                const float (&row_lse)[2]) {
  const int lane = lane_idx();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = first_row + lane / 4 + 8 * r;
    T* row = o + shape.q_row(batch, query, head) * shape.pitch + 8 * (lane % 4);
#pragma unroll
    for (int j = 0; j < kCount / 4; j += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = acc + 4 * (j + i) + 2 * r;
        words[i] = pack_pair<T>(pair[0] * inverse[r], pair[1] * inverse[r]);
      }
      transpose_quad(words, lane);
      if (query < shape.seq_q) {
        store_vector(row + 8 * j, uint4{words[0], words[1], words[2], words[3]});  // [store]
      }
    }
    if (query < shape.seq_q && lane % 4 == 0) {
      lse[shape.lse_index(batch, query, head)] = row_lse[r];
    }
  }
}

}  // namespace cookbook::attention
