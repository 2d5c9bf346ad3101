// SPDX-License-Identifier: MIT
// Level 7: level 6's kernel with the tile that fills its waves.
#pragma once

#include "chapters/12_fp8/level_6_persistent.cuh"

namespace cookbook::fp8 {

namespace tile_choice {

/// A tile of three quarters of level 6's rows. Each of three warpgroups has 64 of them: half the
/// sums, so that their registers suffice for one warpgroup more.
struct Medium : persistent::Config {
  static constexpr int kBlockM = 192, kStages = 4;
  static constexpr int kConsumers = 3, kThreads = 128 * (1 + kConsumers);
  static constexpr int kProducerRegisters = 32, kConsumerRegisters = 160;
};

/// For a problem with few tiles.
struct Small : persistent::Config {
  static constexpr int kBlockM = 128, kBlockN = 64, kStages = 8;
};

/// Relative time of a launch with C's tiles. speed: of C's kernel, relative to level 6's, where
/// every wave is full (notes.md).
template <class C>
double waves_of(const Problem& p, double speed) {
  const std::int64_t resident = std::max(1, device_info().sm_count / C::kCluster);
  const std::int64_t clusters = multicast::Prepared<C>::clusters_of(p);
  const std::int64_t waves = (clusters + resident - 1) / resident;
  return static_cast<double>(waves * C::kBlockM * C::kBlockN) / speed;
}

enum class Tile { large, medium, small };

inline Tile choose(const Problem& p) {
  // [quote tile_choice]
  const double large = waves_of<persistent::Config>(p, 1.0);
  const double medium = waves_of<Medium>(p, 1.03);
  const double small = waves_of<Small>(p, 0.63);
  // [end quote]
  if (small < std::min(large, medium)) return Tile::small;
  return medium < large ? Tile::medium : Tile::large;
}

/// Calls `work` with the level of the tile.
template <class Work>
auto with_tile(Tile tile, const Work& work) {
  switch (tile) {
    case Tile::medium: return work(persistent::LevelOn<Medium>{});
    case Tile::small: return work(persistent::LevelOn<Small>{});
    default: return work(persistent::LevelOn<persistent::Config>{});
  }
}

}  // namespace tile_choice

struct TileChoice : Level {
  struct Plan {
    TmaPlan tma;
    tile_choice::Tile tile;
  };
  static constexpr LevelText text{
      .name = "tile_choice",
      .changed = "tiles of 256 x 128, 192 x 128 or 128 x 64, whichever needs the fewest clocks",
      .expect =
          "1.25x where 256 x 128 fills 2.06 of 3 waves and 192 x 128 fills 2.8; nothing where the "
          "waves are full",
      .cost = "three kernels instead of one",
  };
  static Claims claims(const Problem&) {
    return {global_stores("c").requests(0), global_loads("scale_a").requests(0),
            faster_than_previous(1.1)};
  }
  static Support supports(const Problem& p, const DeviceInfo& device) {
    return Persistent::supports(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    const tile_choice::Tile tile = tile_choice::choose(p);
    return {tile_choice::with_tile(tile, [&](auto level) { return level.prepare(p, at); }), tile};
  }
  static void run(const Plan& plan, Stream stream) {
    tile_choice::with_tile(plan.tile, [&](auto level) { level.run(plan.tma, stream); });
  }
};

}  // namespace cookbook::fp8
