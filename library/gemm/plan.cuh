// SPDX-License-Identifier: MIT
/// @file
/// What the kernels of this folder have in common: what one launch needs on the device, and the
/// configurations of `stream_k_tiles`.
#pragma once

#include <algorithm>

#include "chapters/08_persistent/partial_sums.cuh"
#include "library/gemm/few_vectors.cuh"
#include "library/gemm/pad_rows.cuh"

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
  void (*start)(const Plan&, Stream) = nullptr;
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

}  // namespace cookbook::gemm::any_shape
