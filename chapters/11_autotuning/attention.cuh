// SPDX-License-Identifier: MIT
// Example 4, attention: chapter 10's persistent and its multicast kernel. The space: queries and
// keys per tile, stages, cluster size 1 or 2, and the number of heads whose tiles are interleaved.
#pragma once

#include <algorithm>
#include <cmath>

#include "chapters/10_flash_attention/level_8_persistent.cuh"
#include "chapters/10_flash_attention/sidebar_multicast.cuh"
#include "chapters/11_autotuning/attention_problem.hpp"
#include "chapters/11_autotuning/tuner/space.hpp"

namespace cookbook::attention::tuned {

using Case128 = Case<bf16, 128>;  // what is compiled

/// As the number of keys: 176, or 128 under a causal mask, where half of each diagonal tile is
/// wasted. It is kPersistentTiles. Making a rule a configuration costs nothing,
/// because its kernels are compiled anyway.
inline constexpr int kByMask = 0;

/// Queries and keys per tile, key tiles in flight, blocks per cluster. Then, without a separate
/// kernel: the number of heads whose tiles are interleaved, 0 for make_schedule's choice.
template <int kQueries, int kKeys, int kDepth, int kBlocks, int kHeads>
struct Config {
  static constexpr int kConsumers = kQueries / 64;
  static constexpr int kGroup = kHeads;
  static constexpr int kBlockCount = kBlocks;  // of a cluster: 1 or 2 (kCluster)
  template <int kN>
  using Tile = PersistentConfig<Case128, kConsumers, kN, kDepth>;
  static_assert(kBlocks == 1 || kBlocks == kCluster, "which the two kernels are");
  static_assert(kKeys != kByMask || (kQueries == 128 && kDepth == 2), "chapter 10's tiles");

  static tune::Parameters parameters() {
    return {{"queries", kQueries},
            {"keys", kKeys},
            {"stages", kDepth},
            {"cluster", kBlocks},
            {"group", kHeads}};
  }

  // The kernels' own rules, evaluated without instantiating a kernel.
  static constexpr int kMostKeys = kKeys == kByMask ? 176 : kKeys;
  using Largest = Tile<kMostKeys>;
  static constexpr std::int64_t kSmemBytes = sizeof(typename Largest::Smem);
  // A consumer thread's output, scores and weights, and its other registers: the state of its rows,
  // limits of the mask, descriptors, rings.
  static constexpr int kNeeds = 128 / 2 + kMostKeys / 2 + kMostKeys / 4 + 36;
  static constexpr int kHas =
      kBlocks == 1 ? Largest::kConsumerRegisters : MulticastConfig<Largest>::kConsumerRegisters;
  static constexpr bool kCrowded = kBlocks > 1 && kConsumers > 2;
  static constexpr bool kLegal =
      kSmemBytes <= tune::kSharedMemoryBytes && kNeeds <= kHas && !kCrowded;
  static std::string why_illegal() {
    if (kSmemBytes > tune::kSharedMemoryBytes) return tune::too_much_shared_memory(kSmemBytes);
    if (kNeeds > kHas) {
      return std::to_string(kNeeds) + " registers per thread > " + std::to_string(kHas) + " of " +
             std::to_string(kConsumers) + " consumer warpgroups";
    }
    return "sharing tiles in a cluster leaves three consumer warpgroups too few registers";
  }

  /// Calls f with the tile for a problem with this mask.
  template <class F>
  static void with_tile([[maybe_unused]] const Shape& shape, F&& f) {
    if constexpr (kKeys == kByMask) {
      kPersistentTiles(Case128{}, shape, f);
    } else {
      f(Tile<kKeys>{});
    }
  }
};

template <class C>
struct Tuned : LevelOf<Problem, Buffers> {
  static constexpr bool kShares = C::kBlockCount > 1;  // key tiles and their values, in a cluster
  static constexpr LevelText text{
      .name = "attention",
      .changed = "one configuration of the space",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    TensorMap q_map, k_map, v_map;
    Schedule schedule;  // of query tiles, or of a cluster's pairs of them
    int blocks;
    DeviceMemory counters;  // of the persistent kernel; the multicast kernel's schedule is static
  };

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (const Support hopper = supports_hopper(p, device); !hopper) return hopper;
    if (p.head_dim != Case128::kHeadDim || p.dtype != DType::bf16) {
      return Support::no("tuned for bf16 and head dimension 128");
    }
    if (static_cast<std::int64_t>(device.smem_per_block_bytes) < C::kSmemBytes) {
      return Support::no(tune::too_much_shared_memory(
          C::kSmemBytes, static_cast<std::int64_t>(device.smem_per_block_bytes)));
    }
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    const Shape& s = p.shape;
    const auto [block_m, block_n] = tile_of(p);
    const int share = block_n / C::kBlockCount;  // rows that one block of the cluster loads
    Plan plan{p,
              at,
              sequence_map(p, at.q, s.heads_q, s.seq_q, block_m),
              sequence_map(p, at.k, s.heads_kv, s.seq_k, share),
              sequence_map(p, at.v, s.heads_kv, s.seq_k, share),
              make_schedule(p, C::kBlockCount * block_m, device_info().l2_bytes),
              0,
              DeviceMemory(sizeof(TileCounters), "counters")};
    if (C::kGroup > 0) {
      plan.schedule.heads_per_group = std::max(1, std::min(C::kGroup, plan.schedule.heads));
    }
    plan.blocks =
        std::min(std::max(1, device_info().sm_count / C::kBlockCount), plan.schedule.tiles) *
        C::kBlockCount;
    plan.counters.fill(0);
    return plan;
  }

  static Claims claims(const Problem& p) {
    const auto [block_m, block_n] = tile_of(p);
    const double keys = p.key_tile_bytes(C::kBlockCount * block_m, block_n);
    return {tma_loads("q").bytes(2.0 * p.head_dim * static_cast<double>(p.q_rows())),
            tma_loads("k").bytes(keys), tma_loads("v").bytes(keys)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    auto* o = static_cast<bf16*>(plan.buffers.o);
    const dim3 grid(static_cast<unsigned>(plan.blocks));
    C::with_tile(s, [&](auto tile) {
      using Tile = decltype(tile);
      constexpr size_t kSmem = sizeof(typename Tile::Smem);
      if constexpr (kShares) {
        launch(multicast_kernel<MulticastConfig<Tile>>,
               {grid, Tile::kThreads, kSmem, C::kBlockCount}, stream, plan.q_map, plan.k_map,
               plan.v_map, o, plan.buffers.lse, s, plan.schedule);
      } else {
        launch(persistent_kernel<Tile>, {grid, Tile::kThreads, kSmem}, stream, plan.q_map,
               plan.k_map, plan.v_map, o, plan.buffers.lse, s, plan.schedule,
               plan.counters.template as<TileCounters>());
      }
    });
  }

 private:
  // {queries, keys}
  static std::pair<int, int> tile_of(const Problem& p) {
    std::pair<int, int> size;
    C::with_tile(p.shape, [&](auto tile) { size = {tile.kBlockM, tile.kBlockN}; });
    return size;
  }
};

/// Clocks of one SM. Per key tile: the slowest of tensor cores, exponentials and L2, plus a small
/// part that cannot be hidden. Per query tile: its start and end. The sum is multiplied by the
/// number of tiles of the busiest SM, and is at least what device memory needs.
inline double predict(const tune::Parameters& parameters, const Size& size,
                      const DeviceInfo& device) {
  const auto of = [&](const char* name) { return tune::value_of(parameters, name); };
  const bool causal = size[6] == 1;
  const std::int64_t blocks = of("cluster"), bm = of("queries"), seq_q = size[3], seq_k = size[4];
  const std::int64_t bn = of("keys") != kByMask ? of("keys") : causal ? 128 : 176;
  const double heads = double(size[0] * size[1]), m = double(bm), n = double(bn);
  const double sms = double(device.sm_count / blocks * blocks);

  const double mma = 2 * m * n * 128 / 2048;     // 2,048 FMAs per clock, two GEMMs
  const double exponentials = 1.6 * m * n / 16;  // 16 per clock, and the arithmetic around them
  const double l2 = 4 * 128 * n / double(blocks) / 48;  // K and V are loaded once per cluster
  const double waits = 900 / double(of("stages")) / (n / 64) + (blocks > 1 ? 60 : 0);
  const double step = std::max({mma, exponentials, l2}) + 100 + waits;

  // Key tiles that the query tiles of a head visit; all query tiles of a cluster visit the same.
  double steps = 0, longest = 0, tiles = 0;
  for (std::int64_t first = 0; first < seq_q; first += bm * blocks) {
    const std::int64_t last = std::min(first + bm * blocks, seq_q) - 1;
    const std::int64_t keys =
        causal ? std::clamp<std::int64_t>(last + 1 + seq_k - seq_q, 0, seq_k) : seq_k;
    const double visits = std::ceil(double(keys) / n);
    steps += visits, longest = std::max(longest, visits), ++tiles;
  }
  const double clusters = sms / double(blocks), all = tiles * heads;
  const double per_tile = 2000 + step;  // filling the pipeline, writing the output
  const double waves = std::ceil(all / clusters);
  // A counter distributes long and short tiles evenly; a static schedule leaves the last wave
  // uneven.
  const double even = steps * heads / clusters + (blocks > 1 ? 0.5 : 0.25) * longest;
  const double busiest = causal ? std::max(even, longest) : waves * longest;

  // Keys and values of the interleaved heads: read from memory once if they fit into L2.
  const double kv = 4 * 128 * double(seq_k);
  const double together =
      std::min(heads, std::max(double(of("group")), std::ceil(clusters / std::max(1.0, tiles))));
  const double reads = together * kv < 0.6 * double(device.l2_bytes)
                           ? heads * kv / double(size[1] / size[2])
                           : heads * kv * tiles / 4;
  const double memory = (reads + 4 * 128 * heads * double(seq_q)) / 2300;
  return 3000 + std::max(busiest * step + waves * per_tile, memory);
}

}  // namespace cookbook::attention::tuned
