// SPDX-License-Identifier: MIT
// Example 3, the bf16 GEMM: the full space over the library's kernel for tiles of any shape: tile,
// stages, cluster, schedule, raster order, and whether the last wave is cut into k-blocks
// (stream-K).
#pragma once

#include <algorithm>
#include <cmath>

#include "chapters/11_autotuning/tuner/space.hpp"
#include "library/gemm/stream_k_tiles.cuh"

namespace cookbook::gemm::tuned {

using any_shape::Schedule;

/// M, N, K of a block's tile, stages, blocks per cluster, schedule. Then, without a separate
/// kernel: the group size in rows of cluster tiles, and whether the last wave's tiles are cut into
/// k-blocks.
template <int kM, int kN, int kK, int kDepth, int kBlocks, Schedule kWho, int kRows, bool kCut>
struct Config {
  using Tile = any_shape::Config<kM, kN, kK, kDepth, kBlocks, 8, kWho>;  // what is compiled
  static constexpr int kGroup = kRows;
  static constexpr bool kShare = kCut;

  static tune::Parameters parameters() {
    return {{"m", kM},
            {"n", kN},
            {"k", kK},
            {"stages", kDepth},
            {"cluster", kBlocks},
            {"ping_pong", kWho == Schedule::ping_pong},
            {"group", kRows},
            {"share", kCut}};
  }

  // The kernel's own rules, evaluated without instantiating it.
  static constexpr int kWarpgroupM = kM / (kWho == Schedule::ping_pong ? 1 : 2);  // rows of C
  static constexpr int kAccumulators = kWarpgroupM / 64 * kN / 2;                 // per thread
  static constexpr std::int64_t kSmemBytes =
      std::int64_t{kDepth} * (2 * kK * (kM + kN) + 16) + 8 * tma_store::kBoxBytes;
  static constexpr bool kLegal = kWarpgroupM % 64 == 0 && kAccumulators <= 224 &&
                                 kSmemBytes <= tune::kSharedMemoryBytes &&
                                 (!kCut || kWarpgroupM == 64);
  static std::string why_illegal() {
    if (kWarpgroupM % 64 != 0)
      return "wgmma takes 64 rows; half of the tile has " + std::to_string(kWarpgroupM);
    if (kAccumulators > 224)
      return std::to_string(kAccumulators) + " accumulators > 224 registers per thread";
    if (kSmemBytes > tune::kSharedMemoryBytes) return tune::too_much_shared_memory(kSmemBytes);
    return "two rows of accumulators leave no registers for sharing tiles";
  }
};

template <class C>
struct Tuned : LevelT<bf16> {
  using Plan = any_shape::Plan;
  using Tile = typename C::Tile;
  using Traits = any_shape::Traits<Tile, Major::k, Major::mn>;
  static constexpr LevelText text{
      .name = "gemm",
      .changed = "one configuration of the space",
  };

  static Claims claims(const Problem&) { return {shared_stores().on("stage").conflict_free()}; }

  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
    if (p.a_transposed || p.b_transposed) return Support::no("tuned for row-major A and B (NN)");
    if (static_cast<std::int64_t>(device.smem_per_block_bytes) < Traits::kSmemBytes) {
      return Support::no(tune::too_much_shared_memory(
          Traits::kSmemBytes, static_cast<std::int64_t>(device.smem_per_block_bytes)));
    }
    if (!Traits::kGeneral && (p.ldc % 8 != 0 || !tma_stores_rows_of(p.n))) {
      return Support::no("no registers left to store rows of n = " + std::to_string(p.n) +
                         ", ldc = " + std::to_string(p.ldc) + " without TMA");
    }
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    const int clusters = any_shape::grid_blocks<Tile>() / Tile::kCluster;
    const Work work = work_of(p, Tile::kBlockM * Tile::kCluster, Tile::kBlockN, Tile::kBlockK, 1);
    return any_shape::prepare_in<Tile, Major::k, Major::mn>(
        p, at, C::kShare ? work.tiles() % clusters : 0, C::kGroup);
  }
  static void run(const Plan& plan, Stream stream) {
    if (!launched_fallback(plan.tma, stream)) plan.start(plan, stream);
  }
};

/// Clocks of one GEMM on one SM: the slowest of tensor cores, shared memory and L2 per k-block,
/// times the waves of tiles; at least what device memory needs.
inline double predict(const tune::Parameters& parameters, const Size& size,
                      const DeviceInfo& device) {
  const auto of = [&](const char* name) { return double(tune::value_of(parameters, name)); };
  const double bm = of("m"), bn = of("n"), bk = of("k"), blocks = of("cluster");
  const double m = double(size[0]), n = double(size[1]), k = double(size[2]);
  const double clusters = std::max(1.0, std::floor(device.sm_count / blocks));
  const double tiles = std::ceil(m / (bm * blocks)) * std::ceil(n / bn),
               k_blocks = std::ceil(k / bk);

  const double mma = bm * bn * bk / 2048;                              // 2,048 FMAs per clock
  const double smem = 2 * bk * (bm + bn + bm / 64 * (64 + bn)) / 128;  // filled once, read by wgmma
  const double l2 = 2 * bk * (bm + bn / blocks) / 48;     // B is loaded once per cluster
  const double latency = 900 / of("stages") / (bk / 64);  // hidden by the stages in flight
  const double step = std::max({mma, smem, l2, latency});
  // Stores: with ping-pong the other warpgroup hides them, otherwise they are paid for at the end
  // of every tile.
  const double store = bm * bn / 32, waves = std::ceil(tiles / clusters);
  const double exposed = of("ping_pong") != 0 ? store : store * waves;
  const bool shares = of("share") != 0 && std::fmod(tiles, clusters) != 0;
  const double steps = shares ? tiles * k_blocks / clusters + 12 : waves * k_blocks;

  // Device memory: what a wave of tiles reads, unless both operands stay in L2.
  const double rows = std::min(of("group") * blocks * bm, m);
  const double cols = std::min(std::ceil(clusters / of("group")) * bn, n);
  const double once = 2 * (m * k + k * n + m * n);
  const double again = waves * 2 * k * (rows + cols) + 2 * m * n;
  const double memory =
      (once < 0.6 * double(device.l2_bytes) ? once : std::max(once, again)) / 2300;
  return 3000 + std::max(steps * step + exposed, memory);
}

}  // namespace cookbook::gemm::tuned
