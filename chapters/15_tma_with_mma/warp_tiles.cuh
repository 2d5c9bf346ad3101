// SPDX-License-Identifier: MIT
/// @file
/// Shared by the levels of this chapter; not the subject of any of them: how TMA lays out a stage,
/// where a lane's rows of it are for ldmatrix, and the host side.
#pragma once

#include <cstdint>
#include <string>

#include "chapters/05_tensor_cores/level_9_hoisted_addresses.cuh"
#include "chapters/06_tma/level_4_pipeline.cuh"
#include "chapters/06_tma/tma_level.cuh"
#include "common/device/mbarrier.cuh"
#include "common/device/mma.cuh"
#include "common/device/raster_order.cuh"
#include "common/device/stage_cursor.cuh"
#include "common/device/swizzle.cuh"
#include "common/device/tma.cuh"

namespace cookbook::gemm::warp_tiles {

/// What all levels have in common: chapter 5's tiles, in the 99 KB of shared memory that a block
/// has on an RTX 50, RTX 40 or RTX 30.
struct Config {
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 32;
  static constexpr int kWarpsN = 4;               // by 2: eight warps that multiply
  static constexpr int kWarpM = 64, kWarpN = 64;  // of C, per warp
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8, kSteps = kBlockK / 16;
  static constexpr int kStages = 4;  // 24 KB each
  static constexpr int kThreads = 256;
  static constexpr int kGroup = 8;  // rows of tiles per group of the raster order
};

/// A k-block of A and B. Rows of A are 64 bytes, so their swizzle is that of 64 bytes. B comes in
/// panels of 64 columns.
template <class C>
struct Stage {
  using A = OperandTile<Major::k, Swizzle::b64, C::kBlockM, C::kBlockK>;
  using B = OperandTile<Major::mn, Swizzle::b128, C::kBlockN, C::kBlockK>;
  alignas(1024) unsigned char a[A::kBytes];
  unsigned char b[B::kBytes];
};

template <class C>
struct Smem {
  using Config = C;
  Stage<C> stages[C::kStages];
  uint64_t full[C::kStages], empty[C::kStages];
};

/// Starts the loads of k-block `k_block` of a tile. Called by one thread.
template <class C>
__device__ __forceinline__ void load(Stage<C>& stage, uint64_t* full, const TensorMap* map_a,
                                     const TensorMap* map_b, TileIndex tile, int k_block) {
  mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
  Stage<C>::A::load(stage.a, map_a, full, tile.m * C::kBlockM, k_block * C::kBlockK);
  Stage<C>::B::load(stage.b, map_b, full, tile.n * C::kBlockN, k_block * C::kBlockK);
}

/// Tiles in the order of chapter 5: tile `t` of the matrix.
template <class C>
__device__ __forceinline__ TileIndex tile_at(int t, const Extents& e) {
  return grouped_tile(t, ceil_div(e.m, C::kBlockM), ceil_div(e.n, C::kBlockN), C::kGroup);
}

/// A warp's fragments, two sets: one is multiplied while the other one is loaded.
template <class C>
struct Fragments {
  uint32_t a[2][C::kMmaM][4], b[2][C::kMmaN][2];
  const bf16* a_rows[C::kSteps];  // this lane's row of A in stage 0: k step s, piece 0
  const bf16* b_rows[C::kMmaM];   // of B: k step 0, piece i

  /// `warp` of the eight that multiply. Pieces of A 16 rows apart, and steps of B 16 rows apart,
  /// have the same swizzle, so the offsets between them are constants.
  __device__ __forceinline__ Fragments(const Stage<C>& first, int warp) {
    // [quote addresses]
    const int lane = lane_idx(), row = warp / C::kWarpsN * C::kWarpM + lane % 16;
#pragma unroll
    for (int s = 0; s < C::kSteps; ++s) {
      const int byte = row * Stage<C>::A::kSpanBytes + (2 * s + lane / 16) * 16;
      a_rows[s] = reinterpret_cast<const bf16*>(first.a + swizzle_address<Swizzle::b64>(byte));
    }
    const unsigned char* panel = first.b + warp % C::kWarpsN * Stage<C>::B::kPanelBytes;
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      const int byte = lane % 16 * Stage<C>::B::kSpanBytes + (2 * i + lane / 16) * 16;
      b_rows[i] = reinterpret_cast<const bf16*>(panel + swizzle_address<Swizzle::b128>(byte));
    }
    // [end quote]
  }
  /// Loads piece `i` of k step `step` of a stage into set `set`.
  __device__ __forceinline__ void load_piece(int set, int stage, int step, int i) {
    constexpr int kStage = sizeof(Stage<C>) / sizeof(bf16);
    hoisted_addresses::load_fragments<C>(a[set], b[set],
                                         a_rows[step] + stage * kStage + i * 16 * C::kBlockK,
                                         b_rows[i] + stage * kStage + step * 16 * 64, i);
  }
  /// Multiplies set `set`, and between the instructions loads k step `step` of `stage` into the
  /// other set, if there is one.
  __device__ __forceinline__ void multiply(float (&acc)[C::kMmaM][C::kMmaN][4], int set, bool more,
                                           int stage, int step) {
#pragma unroll
    for (int i = 0; i < C::kMmaM; ++i) {
      if (more) load_piece(1 - set, stage, step, i);
#pragma unroll
      for (int j = 0; j < C::kMmaN; ++j) mma_m16n8k16<bf16>(acc[i][j], a[set][i], b[set][j]);
    }
  }
};

/// Stores a warp's 64 x 64 accumulators from registers.
template <class C>
__device__ __forceinline__ void store_registers(const float (&acc)[C::kMmaM][C::kMmaN][4],
                                                const Output& out, const Extents& e, TileIndex tile,
                                                int warp) {
  const int row = tile.m * C::kBlockM + warp / C::kWarpsN * C::kWarpM + lane_idx() / 4;
  const int col = tile.n * C::kBlockN + warp % C::kWarpsN * C::kWarpN + lane_idx() % 4 * 2;
#pragma unroll
  for (int i = 0; i < C::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < C::kMmaN; ++j) {
      store_two(out, e, row + 16 * i, col + 8 * j, acc[i][j][0], acc[i][j][1]);
      store_two(out, e, row + 16 * i + 8, col + 8 * j, acc[i][j][2], acc[i][j][3]);
    }
  }
}

/// Host side: row-major A and B, and as much shared memory as an RTX 50 has.
template <class C, class SmemOf = Smem<C>>
struct Level : LevelT<bf16> {
  using Config = C;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    static_assert(sizeof(SmemOf) <= 99 * 1024, "fits an RTX 50");
    return supports_tma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<typename Stage<C>::A, typename Stage<C>::B>(p, at);
  }
  static unsigned tiles(const Problem& p) { return blocks_for(p.m, p.n, C::kBlockM, C::kBlockN); }
  /// Launches `kernel` with `blocks` blocks.
  static void launch_blocks(void (*kernel)(TensorMap, TensorMap, Output, Extents), unsigned blocks,
                            const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    launch(kernel, {dim3(blocks), dim3(C::kThreads), sizeof(SmemOf)}, stream, plan.a, plan.b,
           Output{plan.buffers.c, plan.problem.ldc}, extents_of(plan.problem));
  }
  /// Claims of every level: TMA's boxes of A, each loaded once per tile, and no bank conflict.
  static Claims loads(const Problem& p, const Claims& others) {
    const double k_blocks = ceil_div(static_cast<int>(p.k), C::kBlockK);
    Claims claims{tma_loads("a").requests(tiles(p) * k_blocks), shared_loads().conflict_free()};
    claims.insert(claims.end(), others.begin(), others.end());
    return claims;
  }
};

}  // namespace cookbook::gemm::warp_tiles
