// SPDX-License-Identifier: MIT
// Level 12: the last wave is divided. The query tiles that do not fill a wave are split by keys, so
// that every SM gets an equal part. Each block computes chunks of their keys, before its whole
// tiles, and the block that ends last for a tile merges its chunks. The kernel is that of levels
// 9 to 11, with another producer and another consumer.
#pragma once

#include "chapters/10_flash_attention/key_chunks.hpp"
#include "chapters/10_flash_attention/level_11_max_of_bits.cuh"

namespace cookbook::attention {

/// A Division in device memory.
struct KeyChunks {
  const int* begin;  // null: no tile is divided
  const KeyChunk* list;
  float4* partials;   // [chunk][warp][d / 8 + 1][lane]: outputs; maxima and sums of two rows
  unsigned* arrived;  // [chunk][warp], at a tile's first chunk; zero between launches
};

/// What consumers know about a chunk besides its QueuedTile. A whole tile is one chunk.
struct ChunkPlace {
  int first_key_tile, index, first, count;
};

template <class C>
struct ChunkConsumer;

template <class PersistentC>
struct ChunkConfig : CrossTileConfig<PersistentC> {
  using Consumer = ChunkConsumer<ChunkConfig>;
  struct Smem : CrossTileConfig<PersistentC>::Smem {
    alignas(16) ChunkPlace chunk[CrossTileConfig<PersistentC>::kQueued];
  };
};

/// As produce_tiles of cross_tile.cuh, with the block's chunks before its whole tiles. The kernel
/// finds this one by its argument `chunks`, whose type is declared here.
template <class C>
__device__ __forceinline__ void produce_tiles(typename C::Smem& smem, const TensorMap* q_map,
                                              const TensorMap* k_map, const TensorMap* v_map,
                                              const Shape& shape, const Schedule& schedule,
                                              TileCounters* counters, const KeyChunks& chunks) {
  constexpr int kBlockM = C::kBlockM;
  StageCursor<C::kStages> k_ring, v_ring;
  StageCursor<C::kQueued> entry;
  StageCursor<1> q_ring;
  int v_head = -1, v_batch = 0, v_tile = 0;  // the last values, which are not loaded yet
  const auto load_last_values = [&] {
    if (v_head < 0) return;
    load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, v_head, v_tile, v_batch);
    v_head = -1;
  };
  int chunk = 0, end = 0;
  if (chunks.begin != nullptr) chunk = chunks.begin[blockIdx.x], end = chunks.begin[blockIdx.x + 1];
  for (int next = blockIdx.x;;) {
    QueuedTile tile{0, 0, 0, -1};
    ChunkPlace at{0, 0, 0, 1};
    const bool whole = chunk == end;
    if (!whole) {
      const KeyChunk c = chunks.list[chunk];
      const auto [first_query, head, batch] = schedule.at(c.tile, kBlockM, shape.heads_q);
      tile = {first_query, head, batch, c.key_tiles};
      at = {c.first_key_tile, chunk++, c.first, c.count};
    } else if (next < schedule.tiles) {
      const auto [first_query, head, batch] = schedule.at(next, kBlockM, shape.heads_q);
      tile = {first_query, head, batch, key_tiles<kBlockM, C::kBlockN>(shape, first_query)};
    }
    if (tile.key_tiles <= 0) load_last_values();
    mbarrier_wait(&smem.tile_empty[entry.stage], entry.phase ^ 1);
    smem.tile[entry.stage] = tile;
    smem.chunk[entry.stage] = at;
    mbarrier_arrive(&smem.tile_full[entry.stage]);
    entry.advance();
    if (tile.key_tiles < 0) break;
    if (tile.key_tiles > 0) {
      const int kv_head = shape.kv_head(tile.head);
      const auto load_k = [&](int n) {
        load_next<C>(smem.k, smem.k_full, smem.k_empty, k_ring, k_map, kv_head,
                     at.first_key_tile + n, tile.batch);
      };
      load_k(tile.key_tiles - 1);
      load_last_values();
      load_queries_apart<C>(smem, q_map, q_ring, tile);
      for (int n = tile.key_tiles - 2; n >= 0; --n) {
        load_k(n);
        load_next<C>(smem.v, smem.v_full, smem.v_empty, v_ring, v_map, kv_head,
                     at.first_key_tile + n + 1, tile.batch);
      }
      v_head = kv_head, v_batch = tile.batch, v_tile = at.first_key_tile;
    }
    if (whole) next = static_cast<int>(gridDim.x) + atomicAdd(&counters->next, 1);
  }
  reset_counters(counters);
}

/// As TileConsumer, for chunks. Which key tiles need a mask is computed once per chunk.
template <class C>
struct ChunkConsumer : TileConsumer<C> {
  using Base = TileConsumer<C>;
  using typename Base::Entry;
  int clear = 0;  // key tiles 0 .. clear - 1 need no mask: the warp's first query sees all of them

  using Base::Base;
  __device__ __forceinline__ int first_key_tile(const Entry& at) const {
    return this->smem.chunk[at.stage].first_key_tile;
  }
  __device__ __forceinline__ void begin_tile(const Entry& at, const Shape& shape) {
    const int visible = shape.visible_keys(this->first_row(at));
    clear = __shfl_sync(kFullWarp, visible / C::kBlockN - first_key_tile(at), 0);
    Base::begin_tile(at, shape);
  }
  template <int kCount>
  __device__ __forceinline__ void mask(float (&s)[kCount], const Shape& shape, const Entry& at,
                                       int n) const {
    if (n >= clear) {
      mask_tile<C::kBlockN>(s, shape, this->first_row(at), (first_key_tile(at) + n) * C::kBlockN);
    }
  }
  /// Writes this warp's partial output of a chunk. If it is the last of its tile to do so, replaces
  /// acc and rows by the sum over all chunks and returns true. Chunks are added in their order, so
  /// the result does not depend on who is last.
  template <int kCount>
  __device__ __forceinline__ bool merge(const ChunkPlace& at, const KeyChunks& chunks,
                                        float scale_log2, float (&acc)[kCount],
                                        RowStates& rows) const {
    constexpr int kWarps = 4 * C::kConsumers, kVectors = kCount / 4 + 1;
    const int warp = this->warp - 4, lane = this->lane;
    const auto partial = [&](int index) {
      return chunks.partials + (index * kWarps + warp) * (kVectors * 32) + lane;
    };
    float4* mine = partial(at.index);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      __stcg(mine + 8 * i, make_float4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]));
    }
    __stcg(mine + 8 * kCount, make_float4(rows.max[0], rows.max[1], rows.sum[0], rows.sum[1]));
    __threadfence();
    __syncwarp();
    unsigned* arrived = &chunks.arrived[at.first * kWarps + warp];
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
  /// Stores a whole tile, and a divided one if this chunk is the last of it.
  template <class T, int kCount>
  __device__ __forceinline__ void store(T* o, float* lse, const Shape& shape, float (&acc)[kCount],
                                        RowStates& rows, const KeyChunks& chunks) {
    const ChunkPlace at = this->smem.chunk[this->entry.stage];
    Shape stored = shape;  // without rows, nothing is stored
    if (at.count > 1 && !merge(at, chunks, shape.scale_log2, acc, rows)) stored.seq_q = 0;
    Base::store(o, lse, stored, acc, rows);
  }
};

struct LastWave : MaxOfBits {
  static constexpr LevelText text{
      .name = "last_wave",
      .changed =
          "the query tiles of a partly filled last wave are divided among all SMs, by keys; "
          "the mask's bound is computed once per chunk",
      .expect =
          "2,048 query tiles on 132 SMs are 15.5 waves and took the time of 16: 3 % less, minus "
          "the merging; a third where 160 tiles took the time of two waves",
      .cost = "a list of chunks, and partial outputs in device memory, written and read once",
  };

  struct Plan : MaxOfBits::Plan {
    DeviceMemory begin, list, partials, arrived;
    KeyChunks chunks{};
  };
  static Plan prepare(const Problem& p, const Buffers& at) {
    return prepare_chunks(p, at, tile_of(p, kSplitSoftmaxTiles));
  }
  /// tile: {queries, keys}.
  static Plan prepare_chunks(const Problem& p, const Buffers& at, std::pair<int, int> tile) {
    const Shape& s = p.shape;
    const auto [block_m, block_n] = tile;
    Plan plan{prepare_tiles(p, at, tile, 64), {}, {}, {}, {}};
    // Under a mask query tiles take different times, and the short ones fill the last wave.
    if (s.causal || plan.schedule.tiles == 0 || s.seq_k == 0) return plan;
    const Division division =
        divide_last_wave(plan.schedule.tiles, ceil_div(s.seq_k, block_n), device_info().sm_count);
    if (division.begin.empty()) return plan;
    plan.schedule.tiles = division.whole_tiles;
    plan.blocks = device_info().sm_count;
    const auto upload = [](const auto& list, const char* name) {
      const size_t bytes = list.size() * sizeof list[0];
      DeviceMemory memory(bytes, name);
      memory.copy_from_host(list.data(), bytes);
      return memory;
    };
    plan.begin = upload(division.begin, "first chunks");
    plan.list = upload(division.chunks, "chunks");
    const size_t warps = division.chunks.size() * static_cast<size_t>(block_m / 16);
    plan.partials = DeviceMemory(warps * (p.head_dim / 8 + 1) * 32 * sizeof(float4), "partials");
    plan.arrived = DeviceMemory(warps * sizeof(unsigned), "arrived");
    plan.arrived.fill(0);
    plan.chunks = {plan.begin.template as<int>(), plan.list.template as<KeyChunk>(),
                   plan.partials.template as<float4>(), plan.arrived.template as<unsigned>()};
    return plan;
  }
  static Claims claims(const Problem& p) {
    Claims claims = cross_tile_claims(p, tile_of(p, kSplitSoftmaxTiles));
    claims.back() = at_least_previous(0.99, "it pays where query tiles fill few waves: last_wave");
    return claims;
  }
  static void run(const Plan& plan, Stream stream) { run_chunks(plan, stream, kSplitSoftmaxTiles); }
  template <class Rule>
  static void run_chunks(const Plan& plan, Stream stream, const Rule& rule) {
    with_launch<ChunkConfig, bf16, half>(plan, stream, rule, [&](auto config, auto start) {
      start_max_of_bits(config, start, plan.chunks);
    });
  }
};

}  // namespace cookbook::attention
