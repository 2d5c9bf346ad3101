// SPDX-License-Identifier: MIT
// Shared by the persistent levels: tile sizes, the order in which query tiles are computed, and the
// host side.
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

/// The last block to call resets the counters for the next launch. One thread calls.
__device__ __forceinline__ void reset_counters(TileCounters* counters) {
  __threadfence();
  if (atomicAdd(&counters->done, 1) == static_cast<int>(gridDim.x) - 1) {
    atomicExch(&counters->next, 0);
    atomicExch(&counters->done, 0);
  }
}

/// A rule for tiles: calls f with the configuration for a Case and a Shape. Tiles have as many keys
/// as the registers allow, but fewer under a causal mask, because half of each diagonal tile is
/// wasted. At head dimension 64 there are three warpgroups. Levels 8 and 9.
inline constexpr auto kPersistentTiles = [](auto c, const Shape& shape, auto&& f) {
  using CaseT = decltype(c);
  if constexpr (CaseT::kHeadDim == 64) {
    f(PersistentConfig<CaseT, 3, 128>{});
  } else if (shape.causal) {
    f(PersistentConfig<CaseT, 2, 128>{});
  } else {
    f(PersistentConfig<CaseT, 2, 176>{});
  }
};

/// As above, from level 10 on. A long sequence has many key tiles per diagonal tile, so that large
/// tiles pay under a causal mask, too.
inline constexpr auto kSplitSoftmaxTiles = [](auto c, Shape shape, auto&& f) {
  shape.causal = shape.causal && shape.seq_k < 8192;
  kPersistentTiles(c, shape, f);
};

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

/// {queries, keys} of the tiles that a rule picks.
template <class Rule>
std::pair<int, int> tile_of(const Problem& p, const Rule& rule) {
  std::pair<int, int> tile;
  const auto take = [&](auto config) { tile = {config.kBlockM, config.kBlockN}; };
  if (p.head_dim == 64) {
    rule(Case<bf16, 64>{}, p.shape, take);
  } else {
    rule(Case<bf16, 128>{}, p.shape, take);
  }
  return tile;
}

/// Host side of the persistent levels: one block per SM.
struct PersistentLevel : Level {
  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
    Schedule schedule;
    int blocks;
    DeviceMemory counters;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_hopper(p, device);
  }
  /// `tile`: {queries, keys}. One copy has q_rows queries.
  static Plan prepare_tiles(const Problem& p, const Buffers& at, std::pair<int, int> tile,
                            int q_rows) {
    const Shape& s = p.shape;
    const auto [block_m, block_n] = tile;
    const Schedule schedule = make_schedule(p, block_m, device_info().l2_bytes);
    Plan plan{p,
              at,
              sequence_map(p, at.q, s.heads_q, s.seq_q, q_rows),
              sequence_map(p, at.k, s.heads_kv, s.seq_k, block_n),
              sequence_map(p, at.v, s.heads_kv, s.seq_k, block_n),
              schedule,
              std::min(device_info().sm_count, schedule.tiles),
              DeviceMemory(sizeof(TileCounters), "counters")};
    plan.counters.fill(0);
    return plan;
  }
  /// K and V are read once per query tile.
  static Claims key_claims(const Problem& p, std::pair<int, int> tile) {
    const double bytes = p.key_tile_bytes(tile.first, tile.second);
    return {tma_loads("k").bytes(bytes), tma_loads("v").bytes(bytes)};
  }
  /// Calls f(C{}, start) with C = ConfigOf<...> for the tiles that the rule picks. start(kernel,
  /// more...) launches the kernel; `more`: its parameters after the counters. `Elements`: as in
  /// dispatch().
  template <template <class> class ConfigOf, class... Elements, class Rule, class F>
  static void with_launch(const Plan& plan, Stream stream, const Rule& rule, const F& f) {
    const Shape& s = plan.problem.shape;
    dispatch<Elements...>(plan.problem, plan.buffers, [&](auto c, auto*, auto*, auto*, auto* o) {
      rule(c, s, [&](auto config) {
        using C = ConfigOf<decltype(config)>;
        f(C{}, [&](auto kernel, auto... more) {
          launch(kernel,
                 {static_cast<unsigned>(plan.blocks), C::kThreads, sizeof(typename C::Smem)},
                 stream, plan.q_map, plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule,
                 plan.counters.template as<TileCounters>(), more...);
        });
      });
    });
  }
};

}  // namespace cookbook::attention
