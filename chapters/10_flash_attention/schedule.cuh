// SPDX-License-Identifier: MIT
// Shared by the persistent levels: tile sizes, and the order in which query tiles are computed.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/10_flash_attention/wgmma_tile.cuh"

namespace cookbook::attention {

template <class CaseT, int kConsumersV, int kBlockNV, int kStagesV = 2>
struct PersistentConfig : CaseT {
  static constexpr int kConsumers = kConsumersV;                  // warpgroups, 64 queries each
  static constexpr int kThreads = (1 + kConsumers) * kWarpgroup;  // + the producer
  static constexpr int kBlockM = 64 * kConsumers;                 // queries per block
  static constexpr int kBlockN = kBlockNV;                        // keys per tile
  static constexpr int kStages = kStagesV;                        // tiles of K, and of V
  static constexpr int kProducerRegisters = kConsumers == 2 ? 24 : 32;
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 240 : 160;
  static constexpr int kSlack = 8;  // log2 of how far a weight may exceed 1; half reaches 2^16
  static constexpr int kTileBytes = kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char q[kBlockM * CaseT::kHeadDim * 2];
    alignas(1024) unsigned char k[kStages][kTileBytes];
    alignas(1024) unsigned char v[kStages][kTileBytes];
    uint64_t q_full, q_empty, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
    uint64_t tile_full[2], tile_empty[2];
    int tile[2];  // numbers of query tiles, from the producer to the consumers
  };
};

/// The raster order of the query tiles of all heads.
struct Schedule {
  int tiles;            // of all heads
  int query_tiles;      // of one head
  int heads;            // batch * heads_q
  int heads_per_group;  // heads whose tiles are interleaved
  bool longest_first;

  __device__ __forceinline__ QueryTile at(int tile, int block_m, int heads_q) const {
    const int group = tile / (query_tiles * heads_per_group);
    const int within = tile - group * query_tiles * heads_per_group;
    const int in_group = min(heads_per_group, heads - group * heads_per_group);
    const int head = group * heads_per_group + within % in_group;
    const int m = within / in_group;
    return {(longest_first ? query_tiles - 1 - m : m) * block_m, head % heads_q, head / heads_q};
  }
};

/// Two counters in device memory, zero between launches: assigned tiles, finished blocks.
struct TileCounters {
  int next, done;
};

/// Calls f with the configuration for the problem. Tiles have as many keys as the registers allow,
/// but fewer under a causal mask, because half of each diagonal tile is wasted. At head dimension
/// 64 there are three warpgroups.
template <class CaseT, class F>
void with_persistent_config(CaseT, bool causal, F&& f) {
  if constexpr (CaseT::kHeadDim == 64) {
    f(PersistentConfig<CaseT, 3, 128>{});
  } else if (causal) {
    f(PersistentConfig<CaseT, 2, 128>{});
  } else {
    f(PersistentConfig<CaseT, 2, 176>{});
  }
}

/// As above, from level 10 on. A long sequence has many key tiles per diagonal tile, so that large
/// tiles pay under a causal mask, too.
template <class CaseT, class F>
void with_split_softmax_config(CaseT c, const Shape& shape, F&& f) {
  with_persistent_config(c, shape.causal && shape.seq_k < 8192, f);
}

/// The schedule for tiles of block_m queries on a device with `l2_bytes` of L2.
inline Schedule make_schedule(const Problem& p, int block_m, size_t l2_bytes) {
  const Shape& s = p.shape;
  const int query_tiles = ceil_div(s.seq_q, block_m), heads = s.batch * s.heads_q;
  const int sharing = s.heads_q / s.heads_kv;  // query heads per KV head
  const size_t kv_bytes = 4 * size_t(p.head_dim) * std::max(s.seq_k, 1);
  // Without a mask all tiles take equally long: one head after the other. With a mask: the long
  // tiles of as many heads as fit into half of L2, then their shorter ones. A small last group
  // would end the launch with its longest tiles, so groups are equal, and larger if need be.
  const int kv_heads = s.batch * s.heads_kv;
  const int fit = s.causal ? std::max(1, static_cast<int>(l2_bytes / 2 / kv_bytes)) : 1;
  const int groups = std::max(1, kv_heads / fit);
  const int group = std::max(1, ceil_div(kv_heads, groups) * sharing);
  return {query_tiles * heads, query_tiles, heads, group, s.causal};
}

/// {queries, keys} of the tiles that with_config(case, f) picks for the problem's head dimension.
template <class F>
std::pair<int, int> tile_of(const Problem& p, F&& with_config) {
  std::pair<int, int> tile;
  const auto take = [&](auto config) { tile = {config.kBlockM, config.kBlockN}; };
  if (p.head_dim == 64) {
    with_config(Case<bf16, 64>{}, take);
  } else {
    with_config(Case<bf16, 128>{}, take);
  }
  return tile;
}
/// {queries, keys} of the tiles of levels 8 and 9, and of levels 10 and 11.
inline std::pair<int, int> persistent_tile(const Problem& p) {
  return tile_of(p, [&](auto c, auto f) { with_persistent_config(c, p.shape.causal, f); });
}
inline std::pair<int, int> split_softmax_tile(const Problem& p) {
  return tile_of(p, [&](auto c, auto f) { with_split_softmax_config(c, p.shape, f); });
}

}  // namespace cookbook::attention
