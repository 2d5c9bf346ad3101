// SPDX-License-Identifier: MIT
// Shared by levels 14 and 15: what they add to seam.cuh. Pieces of query tiles, in the producer and
// in the consumers.
#pragma once

#include "chapters/10_flash_attention/last_wave.hpp"
#include "chapters/10_flash_attention/seam.cuh"

namespace cookbook::attention {

/// A Division in device memory.
struct Pieces {
  const int* begin;  // null: no tile is divided
  const Piece* list;
  float4* partials;   // [piece][warp][d / 8 + 1][lane]: outputs; maxima and sums of two rows
  unsigned* arrived;  // [piece][warp], at a tile's first piece; zero between launches
};

/// What consumers know about a piece besides its SeamTile. A whole tile is one piece.
struct PieceAt {
  int first_key_tile, index, first, count;
};

template <class PersistentC>
struct LastWaveConfig : SeamConfig<PersistentC> {
  struct Smem : SeamConfig<PersistentC>::Smem {
    alignas(16) PieceAt piece[SeamConfig<PersistentC>::kSlots];
  };
};

/// As produce_tiles, but the block's pieces come first.
template <class C>
__device__ __forceinline__ void produce_pieces(typename C::Smem& smem, const TensorMap* q_map,
                                               const TensorMap* k_map, const TensorMap* v_map,
                                               const Shape& shape, const Schedule& schedule,
                                               const Pieces& pieces, TileCounters* counters) {
  constexpr int kBlockM = C::kBlockM;
  StageCursor<C::kStages> k_ring, v_ring;
  StageCursor<C::kSlots> slot;
  StageCursor<1> q_ring;
  int v_head = -1, v_batch = 0, v_tile = 0;  // the last values, which are not loaded yet
  const auto load_last_values = [&] {
    if (v_head < 0) return;
    load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, v_head, v_tile, v_batch);
    v_head = -1;
  };
  int piece = 0, end = 0;
  if (pieces.begin != nullptr) piece = pieces.begin[blockIdx.x], end = pieces.begin[blockIdx.x + 1];
  for (int next = blockIdx.x;;) {
    // Step 1: tell the consumers which tile comes next. Before one without keys they finish the
    // previous tile, for which they need its last values.
    SeamTile tile{0, 0, 0, -1};
    PieceAt at{0, 0, 0, 1};
    const bool whole = piece == end;
    if (!whole) {
      const Piece p = pieces.list[piece];
      const auto [first_query, head, batch] = schedule.at(p.tile, kBlockM, shape.heads_q);
      tile = {first_query, head, batch, p.key_tiles};
      at = {p.first_key_tile, piece++, p.first, p.count};
    } else if (next < schedule.tiles) {
      const auto [first_query, head, batch] = schedule.at(next, kBlockM, shape.heads_q);
      tile = {first_query, head, batch, key_tiles<kBlockM, C::kBlockN>(shape, first_query)};
    }
    if (tile.key_tiles <= 0) load_last_values();
    mbarrier_wait(&smem.tile_empty[slot.stage], slot.phase ^ 1);
    smem.tile[slot.stage] = tile;
    smem.piece[slot.stage] = at;
    mbarrier_arrive(&smem.tile_full[slot.stage]);
    slot.advance();
    if (tile.key_tiles < 0) break;
    // Step 2: load its queries, keys and values, in the order in which the consumers use them.
    // The last values follow the next tile's first keys.
    if (tile.key_tiles > 0) {
      const int kv_head = shape.kv_head(tile.head);
      const auto load_k = [&](int n) {
        load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, k_map, kv_head,
                     at.first_key_tile + n, tile.batch);
      };
      load_k(tile.key_tiles - 1);
      load_last_values();
      for (int c = 0; c < C::kConsumers; ++c) {
        mbarrier_wait(&smem.q_empty[c], q_ring.phase ^ 1);
        mbarrier_arrive_expect_tx(&smem.q_full[c], 64 * C::kHeadDim * 2);
        load_tile<C::kHeadDim, 64, kBlockM>(smem.q + c * 64 * 128, q_map, &smem.q_full[c],
                                            tile.head, tile.first_query + c * 64, tile.batch);
      }
      q_ring.advance();
      for (int n = tile.key_tiles - 2; n >= 0; --n) {
        load_k(n);
        load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, kv_head,
                     at.first_key_tile + n + 1, tile.batch);
      }
      v_head = kv_head, v_batch = tile.batch, v_tile = at.first_key_tile;
    }
    if (whole) next = static_cast<int>(gridDim.x) + atomicAdd(&counters->next, 1);
  }
  // Step 3: the last block resets the counters for the next launch.
  __threadfence();
  if (atomicAdd(&counters->done, 1) == static_cast<int>(gridDim.x) - 1) {
    atomicExch(&counters->next, 0);
    atomicExch(&counters->done, 0);
  }
}

/// As SeamConsumer, for pieces.
template <class C>
struct PieceConsumer : SeamConsumer<C> {
  using SeamConsumer<C>::SeamConsumer, typename SeamConsumer<C>::Slot;
  __device__ __forceinline__ int first_key_tile(const Slot& at) const {
    return this->smem.piece[at.stage].first_key_tile;
  }
  /// Writes this warp's partial output of a piece. If it is the last of its tile to do so, replaces
  /// acc and rows by the sum over all pieces and returns true. Pieces are added in their order, so
  /// the result does not depend on who is last.
  template <int kCount>
  __device__ __forceinline__ bool merge(const PieceAt& at, const Pieces& pieces, float scale_log2,
                                        float (&acc)[kCount], RowStates& rows) const {
    constexpr int kWarps = 4 * C::kConsumers, kVectors = kCount / 4 + 1;
    const int warp = this->warp - 4, lane = this->lane;
    const auto partial = [&](int index) {
      return pieces.partials + (index * kWarps + warp) * (kVectors * 32) + lane;
    };
    float4* mine = partial(at.index);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      __stcg(mine + 8 * i, make_float4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]));
    }
    __stcg(mine + 8 * kCount, make_float4(rows.max[0], rows.max[1], rows.sum[0], rows.sum[1]));
    __threadfence();
    __syncwarp();
    unsigned* arrived = &pieces.arrived[at.first * kWarps + warp];
    unsigned before = 0;
    if (lane == 0) before = atomicAdd(arrived, 1u);
    before = __shfl_sync(kFullWarp, before, 0);
    if (before + 1 != static_cast<unsigned>(at.count)) return false;
    __syncwarp();
    __threadfence();
    rows = RowStates{};
#pragma unroll
    for (float& x : acc) x = 0;
#pragma unroll 1
    for (int n = 0; n < at.count; ++n) {
      const float4* other = partial(at.first + n);
      const float4 state = __ldcg(other + 8 * kCount);
      const float max[2] = {state.x, state.y}, sum[2] = {state.z, state.w};
      float old_weight[2], weight[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float top = fmaxf(rows.max[r], max[r]);
        const float offset = top == kMinusInfinity ? 0.0f : top * scale_log2;
        old_weight[r] = ex2_approx_ftz(rows.max[r] * scale_log2 - offset);
        weight[r] = ex2_approx_ftz(max[r] * scale_log2 - offset);
        rows.max[r] = top;
        rows.sum[r] = rows.sum[r] * old_weight[r] + sum[r] * weight[r];
      }
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        const float4 x = __ldcg(other + 8 * i);
        acc[i] = acc[i] * old_weight[0] + x.x * weight[0];
        acc[i + 1] = acc[i + 1] * old_weight[0] + x.y * weight[0];
        acc[i + 2] = acc[i + 2] * old_weight[1] + x.z * weight[1];
        acc[i + 3] = acc[i + 3] * old_weight[1] + x.w * weight[1];
      }
    }
    if (lane == 0) *arrived = 0;  // for the next launch
    return true;
  }
  /// As store, if the piece is a whole tile or the last one of its tile.
  template <class T, int kCount>
  __device__ __forceinline__ void store_piece(T* o, float* lse, const Shape& shape,
                                              const Pieces& pieces, float (&acc)[kCount],
                                              RowStates& rows) {
    const PieceAt at = this->smem.piece[this->slot.stage];
    Shape stored = shape;
    if (at.count > 1 && !merge(at, pieces, shape.scale_log2, acc, rows)) stored.seq_q = 0;
    this->store(o, lse, stored, acc, rows);
  }
};

}  // namespace cookbook::attention
