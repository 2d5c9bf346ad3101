// SPDX-License-Identifier: MIT
// Shared by levels 3 to 9, which have the same tiles: a block has 128 keys, 64 per warpgroup, and
// walks over query tiles. How tiles are loaded, the matrix multiplications of one tile, and
// the host side.
//
//   k, v:   two tiles of 64 keys, [64][d], one per warpgroup
//   q, do:  a query tile, [kQueries][d], in stages
//   ds:     what all warpgroups need for dq
#pragma once

#include "chapters/10_flash_attention/hopper_level.cuh"
#include "chapters/13_attention_backward/level_2_tensor_cores.cuh"

namespace cookbook::attention::backward {

template <int kDim, int kQueriesPerTile = 64>
struct HopperConfig : Case<bf16, kDim> {
  static constexpr int kConsumers = 2, kKeys = 64 * kConsumers;
  static constexpr int kQueries = kQueriesPerTile;
  static constexpr int kKeyBytes = 64 * kDim * 2, kQueryBytes = kQueries * kDim * 2;
};

/// A query tile as it is loaded.
template <class C>
struct QueryStage {
  alignas(1024) unsigned char q[C::kQueryBytes];
  alignas(1024) unsigned char d_o[C::kQueryBytes];
};
/// And what is known of the queries.
template <class C>
struct TileStats {
  alignas(16) float lse[C::kQueries];
  alignas(16) float delta[C::kQueries];
};

/// The block's keys.
template <class C>
struct KeyTiles {
  alignas(1024) unsigned char k[C::kConsumers][C::kKeyBytes];
  alignas(1024) unsigned char v[C::kConsumers][C::kKeyBytes];
};

/// Tensor maps, passed by value as a kernel's parameter.
struct Maps {
  TensorMap q, d_o, k, v;
};

/// Starts the copy of the block's keys. Called by one thread.
template <class C>
__device__ __forceinline__ void load_keys(KeyTiles<C>& keys, uint64_t* full, const Maps& maps,
                                          const KeyTile& tile) {
  mbarrier_arrive_expect_tx(full, sizeof keys.k + sizeof keys.v);
#pragma unroll
  for (int half = 0; half < C::kConsumers; ++half) {
    const int first = tile.first_key + 64 * half;
    load_tile<C::kHeadDim, 64>(keys.k[half], &maps.k, full, tile.kv_head, first, tile.batch);
    load_tile<C::kHeadDim, 64>(keys.v[half], &maps.v, full, tile.kv_head, first, tile.batch);
  }
}

/// Starts the copy of a query tile. Called by one thread.
template <class C>
__device__ __forceinline__ void load_queries(QueryStage<C>& stage, TileStats<C>& tile_stats,
                                             uint64_t* full, const Maps& maps,
                                             const QueryStats& stats, int64_t stat, int head,
                                             int first_query, int batch) {
  constexpr uint32_t kStatBytes = C::kQueries * sizeof(float);
  mbarrier_arrive_expect_tx(full, 2 * C::kQueryBytes + 2 * kStatBytes);
  load_tile<C::kHeadDim, C::kQueries>(stage.q, &maps.q, full, head, first_query, batch);
  load_tile<C::kHeadDim, C::kQueries>(stage.d_o, &maps.d_o, full, head, first_query, batch);
  bulk_load(tile_stats.lse, stats.lse + stat, kStatBytes, full);
  bulk_load(tile_stats.delta, stats.delta + stat, kStatBytes, full);
}

/// The producer's whole work from level 4 on. Called by one thread.
template <class C, class Smem>
__device__ __forceinline__ void load_all(Smem& smem, const Maps& maps, const QueryStats& stats,
                                         const Shape& shape, const KeyTile& own,
                                         const QueryTiles& tiles) {
  load_keys<C>(smem.keys, &smem.keys_full, maps, own);
  StageCursor<C::kStages> ring;
  QueryCursor at(tiles);
  for (int n = 0; n < tiles.count; ++n, ring.advance(), at.advance(tiles)) {
    const int head = at.head, first_query = at.tile * C::kQueries;
    mbarrier_wait(&smem.empty[ring.stage], ring.phase ^ 1);
    load_queries<C>(smem.stages[ring.stage], smem.stats[ring.stage], &smem.full[ring.stage], maps,
                    stats, stats.at(own.batch, shape.heads_q, head, first_query), head, first_query,
                    own.batch);
  }
}

/// Initialises the barriers of the stages. One thread calls; a barrier of the block must follow.
template <class C, class Smem>
__device__ __forceinline__ void init_stage_barriers(Smem& smem) {
  for (int stage = 0; stage < C::kStages; ++stage) {
    mbarrier_init(&smem.full[stage], 1);
    mbarrier_init(&smem.empty[stage], 4 * C::kConsumers);  // readers: the consumers' warps
  }
  timeline::name_ring(smem.full, smem.empty, 'Q');
  fence_mbarrier_init();
}

/// And that of the keys.
template <class C, class Smem>
__device__ __forceinline__ void init_barriers(Smem& smem) {
  mbarrier_init(&smem.keys_full, 1);
  init_stage_barriers<C>(smem);
}

/// One batch: acc += A^T B. A: 64 k x 64 m, B: 64 k x d, in shared memory, both with k down the
/// rows. Issued and committed.
template <int kHeadDim>
__device__ __forceinline__ void start_transposed(float (&acc)[kHeadDim / 2], const unsigned char* a,
                                                 const unsigned char* b) {
  const uint64_t a_desc = wgmma_descriptor<Swizzle::b128>(a, 0, 1024);
  const uint64_t b_desc = wgmma_descriptor<Swizzle::b128>(b, 64 * 128, 1024);
  wgmma_fence_operand(acc);
  wgmma_fence();
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    wgmma_m64k16<kHeadDim, bf16, Major::mn, Major::mn>(
        acc, wgmma_descriptor_advance(a_desc, j * 16 * 128),
        wgmma_descriptor_advance(b_desc, j * 16 * 128), true);
  }
  wgmma_commit();
}

/// The part of a tile's dq = ds k that warpgroup `consumer` computes: of a tile of 64 queries it
/// has half of the columns, of a tile of 128 half of the queries, and always 64 rows.
template <class C>
struct QueryPart {
  static constexpr bool kByRows = C::kQueries == 128;
  static constexpr int kColumns = kByRows ? C::kHeadDim : C::kHeadDim / 2;
  static constexpr int kCount = kColumns / 2;  // accumulators per thread
  static constexpr int kBytes = 64 * kColumns * 4;

  __device__ static constexpr int first_row(int consumer) { return kByRows ? 64 * consumer : 0; }
  __device__ static constexpr int first_column(int consumer) {
    return kByRows ? 0 : kColumns * consumer;
  }
};

/// One batch: dq = ds k for this warpgroup's part, over all 128 keys. descriptor_of(j): of the
/// part's queries and keys 16 j .. 16 j + 15 of ds. Issued and committed.
template <class C, Major kMajor, class DescriptorOf>
__device__ __forceinline__ void start_query_part(float (&dq)[QueryPart<C>::kCount],
                                                 const KeyTiles<C>& keys, int consumer,
                                                 const DescriptorOf& descriptor_of) {
  const int column = QueryPart<C>::first_column(consumer);
  const uint64_t k_desc = wgmma_descriptor<Swizzle::b128>(
      keys.k[0] + column / kPanel * 64 * 128 + column % kPanel * 2, 64 * 128, 1024);
  wgmma_fence_operand(dq);
  wgmma_fence();
#pragma unroll
  for (int j = 0; j < C::kKeys / 16; ++j) {
    wgmma_m64k16<QueryPart<C>::kColumns, bf16, kMajor, Major::mn>(
        dq, descriptor_of(j),
        wgmma_descriptor_advance(k_desc, j / 4 * C::kKeyBytes + j % 4 * 16 * 128), j > 0);
  }
  wgmma_commit();
}

/// Host side of levels 3 to 9.
struct HopperPlan : PlanBase {
  Maps maps;
  /// `queries`: per tile.
  HopperPlan(const Problem& p, const Buffers& at, int queries)
      : PlanBase(p, at, true),
        maps{map_of(p, at.q, true, queries), map_of(p, at.d_o, true, queries),
             map_of(p, at.k, false, 64), map_of(p, at.v, false, 64)} {}

 private:
  static TensorMap map_of(const Problem& p, const void* base, bool of_queries, int box_rows) {
    const Shape& s = p.shape();
    return sequence_map(p.forward, base, of_queries ? s.heads_q : s.heads_kv,
                        of_queries ? s.seq_q : s.seq_k, box_rows);
  }
};

/// ConfigOf: the level's configuration by head dimension.
template <template <int> class ConfigOf>
struct HopperLevel : Level {
  using Plan = HopperPlan;
  static constexpr bool same_every_run = false;  // the order of the additions to dq

  static int queries_per_tile(const Problem& p) {
    return p.head_dim() == 64 ? ConfigOf<64>::kQueries : ConfigOf<128>::kQueries;
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p.forward, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) { return {p, at, queries_per_tile(p)}; }
  /// Queries that all blocks together load, times the heads. `whole`: in whole tiles.
  static double loaded_queries(const Problem& p, bool whole) {
    const Shape& s = p.shape();
    const int tile = queries_per_tile(p);
    double rows = 0;
    for (int first_key = 0; first_key < s.seq_k; first_key += 128) {
      const int hidden = s.causal ? std::max(0, first_key - (s.seq_k - s.seq_q)) : 0;
      const int end = whole ? ceil_div(s.seq_q, tile) * tile : s.seq_q;
      rows += std::max(0, end - hidden / tile * tile);
    }
    return rows * s.batch * s.heads_q;
  }
  /// Bytes of q (or do) that all blocks load together.
  static double query_bytes(const Problem& p) {
    return 2 * p.head_dim() * loaded_queries(p, false);
  }
  /// kernel_of(ConfigOf<...>{}): the main kernel.
  template <class F>
  static void launch_tiles(const Plan& plan, Stream stream, F kernel_of) {
    const Shape& s = plan.problem.shape();
    with_head_dim(plan.problem, [&](auto d) {
      using C = ConfigOf<decltype(d)::value>;
      const int key_tiles = ceil_div(s.seq_k, C::kKeys);
      const dim3 grid(static_cast<unsigned>(int64_t{key_tiles} * s.heads_kv * s.batch));
      launch(kernel_of(C{}), {grid, C::kThreads, sizeof(typename C::Smem)}, stream, plan.maps,
             plan.buffers.dk, plan.buffers.dv, plan.stats(), s, key_tiles,
             gradient_scale(plan.problem));
    });
  }
};

/// As store_gradient, 16 bytes at a time: a quad holds 32 columns of a row as words of two columns,
/// and after the transpose each lane holds four neighbouring words.
template <int kCount>
__device__ __forceinline__ void store_gradient_wide(bf16* gradient, int64_t stride, int first_row,
                                                    int rows, const float (&acc)[kCount],
                                                    float factor) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + lane_idx() / 4 + 8 * r;
    bf16* to = gradient + row * stride + 8 * (lane_idx() % 4);
#pragma unroll
    for (int j = 0; j < kCount / 4; j += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = acc + 4 * (j + i) + 2 * r;
        words[i] = pack_pair<bf16>(pair[0] * factor, pair[1] * factor);
      }
      transpose_quad(words, lane_idx());
      if (row < rows) {
        store_vector(to + 8 * j, uint4{words[0], words[1], words[2], words[3]});  // [store]
      }
    }
  }
}

/// Stores a warp's 16 rows of dk and dv, from `warp_row` of the key tile on.
template <int kCount>
__device__ __forceinline__ void store_gradients(bf16* dk, bf16* dv, const Shape& shape,
                                                const KeyTile& own, int first_head, int warp_row,
                                                const float (&dk_acc)[kCount],
                                                const float (&dv_acc)[kCount], float scale) {
  const int64_t head = shape.k_row(own.batch, 0, first_head) * shape.pitch;
  const int64_t stride = shape.heads_kv * shape.pitch;
  const int row = own.first_key + warp_row;
  store_gradient_wide(dk + head, stride, row, shape.seq_k, dk_acc, scale);
  store_gradient_wide(dv + head, stride, row, shape.seq_k, dv_acc, 1);
}

}  // namespace cookbook::attention::backward
