// SPDX-License-Identifier: MIT
/// @file
/// Level 6 apart from its kernel: what a configuration is, what a GEMM needs on the device, and an
/// estimate of the time that each configuration takes.
#pragma once

#include <algorithm>

#include "chapters/08_persistent/gemv_problem.cuh"
#include "chapters/08_persistent/pad_rows.cuh"
#include "chapters/08_persistent/partial_sums.cuh"

namespace cookbook::gemm::any_shape {

using tma_store::kBoxBytes;

/// cooperative: both consumer warpgroups compute one tile, half of its rows each.
/// ping_pong: each has its own tile; one multiplies while the other stores.
enum class Schedule { cooperative, ping_pong };

template <int kM, int kN, int kK, int kDepth, int kBlocks, int kRows, Schedule kWho>
struct Config {
  static constexpr int kBlockM = kM, kBlockN = kN, kBlockK = kK;
  static constexpr int kStages = kDepth;
  static constexpr int kCluster = kBlocks;  // blocks, one above the other, with a common B tile
  static constexpr int kGroup = kRows;      // group size: rows of cluster tiles, see Work::at
  static constexpr Schedule kSchedule = kWho;
};

/// A configuration for operands of one layout, with the constants that follow from it.
template <class C, Major kA, Major kB>
struct Traits : C {
  static constexpr Major kMajorA = kA, kMajorB = kB;
  static constexpr Swizzle kSwizzle = Swizzle::b128;
  using A = OperandTile<kA, kSwizzle, C::kBlockM, C::kBlockK>;
  using B = OperandTile<kB, kSwizzle, C::kBlockN, C::kBlockK, C::kCluster>;
  static constexpr bool kPingPong = C::kSchedule == Schedule::ping_pong;
  static constexpr int kMmaM = C::kBlockM / (kPingPong ? 1 : 2) / 64;  // per warpgroup
  // True if registers are left to cut tiles (stream-K) and to store rows of any pitch.
  static constexpr bool kGeneral = kMmaM == 1;
  static constexpr int kConsumers = 2;                       // warpgroups
  static constexpr int kThreads = 128 * (1 + kConsumers);    // + the producer's warpgroup
  static constexpr int kTileWarps = kPingPong ? 4 : 8;       // warps that multiply one tile
  static constexpr int kReaders = C::kCluster * kTileWarps;  // of a stage
  static constexpr int kRingBytes = C::kStages * (A::kBytes + B::kBytes + 16);  // + barriers
  static constexpr int kWarps = 4 * kConsumers;
  static constexpr int kStoreBuffers = kRingBytes + kWarps * 2 * kBoxBytes <= 232448 ? 2 : 1;
  static constexpr int kSmemBytes = kRingBytes + kWarps * kStoreBuffers * kBoxBytes;
  static_assert(kSmemBytes <= 232448, "more shared memory than a block can have");
  static_assert(kMmaM >= 1 && kMmaM * C::kBlockN <= 448, "accumulators must fit the registers");
  static_assert(C::kBlockN % 64 == 0 && C::kCluster <= 2, "whole boxes of C; clusters of 1 or 2");
};

/// What one GEMM on this device needs: its work, its tensor maps, its workspace.
struct Plan {
  TmaPlan tma;
  PaddedMatrix a{}, b{};  // what TMA reads: the matrices themselves or padded copies
  Output out{};           // c is null where TMA stores C
  Work work{};
  int blocks = 0;
  DeviceMemory sums{}, flags{};  // stream-K, or the splits of a GEMM with one row
  Gemv gemv{};                   // few rows or columns of C: of the above only `tma` is used
  Splits splits{};
  void (*launch_product)(const Plan&, Stream) = nullptr;
};

/// Blocks of a persistent grid: as many as there are SMs, in whole clusters.
template <class C>
int grid_blocks() {
  return std::max(1, device_info().sm_count / C::kCluster) * C::kCluster;
}

/// Whether a launch with tiles of block_m rows may start before the one before it has ended. It
/// saves a start, but its blocks then start on whichever SMs are free first, and neighbours no
/// longer load the same lines of L2 at the same time. With long K that costs more than a start, and
/// with few rows, which load more per multiplication, it does so earlier: see notes.md.
inline bool launches_dependent(const Problem& p, int block_m) { return p.k <= 12 * block_m; }

/// Estimated time of a GEMM with configuration C, in clocks of the tensor cores (4,096 operations
/// each), with its tiles assigned whole or those of the last incomplete wave cut into k-blocks.
/// kStartClocks: filling the ring and storing the last tile. kShareBlocks: writing partial sums of
/// a tile of 128 rows and fetching them, both through L2, in k-blocks of the tile.
struct Prediction {
  static constexpr double kStartClocks = 3000, kShareBlocks = 40;
  double whole, shared;
  int tiles_to_share;
};

/// The estimate, from extents alone.
template <class C>
Prediction predict(const Problem& p) {
  const Work work = work_of(p, C::kBlockM * C::kCluster, C::kBlockN, C::kBlockK, C::kGroup);
  const int clusters = grid_blocks<C>() / C::kCluster;
  // With small tiles TMA and shared memory are the limit, because operands are loaded more often.
  // Bytes written and read in shared memory per clock, 128 at most.
  const double mma_clocks = C::kBlockM * C::kBlockN * C::kBlockK / 2048.0;
  const double loaded = 2.0 * C::kBlockK * (C::kBlockM + C::kBlockN);
  const double read = 2.0 * C::kBlockK * C::kBlockM / 64 * (64 + C::kBlockN);
  const double clocks = std::max(mma_clocks, (loaded + read) / 128);
  const int waves = ceil_div(work.tiles(), clusters), rest = work.tiles() % clusters;
  Prediction result;
  result.whole = Prediction::kStartClocks + clocks * waves * work.k_blocks;
  result.tiles_to_share = rest;
  result.shared =
      Prediction::kStartClocks + clocks * (1.0 * work.tiles() * work.k_blocks / clusters +
                                           Prediction::kShareBlocks * C::kBlockM / 128);
  return result;
}

}  // namespace cookbook::gemm::any_shape
